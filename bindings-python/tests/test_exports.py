"""What the package exports."""

import re
from pathlib import Path

import leasehold
from leasehold import aio

PACKAGE = Path(leasehold.__file__).parent


def test_every_public_module_is_exported_by_its_name():
    """Type checkers take for private what a typed package imports, unless it is imported as itself."""
    modules = {it.stem for it in PACKAGE.iterdir() if it.suffix == ".py" or (it / "__init__.py").exists()}
    exported = re.findall(r"^from \. import (\w+) as \1$", (PACKAGE / "__init__.py").read_text(), re.M)
    assert {it for it in exported if not it.startswith("_")} == {it for it in modules if not it.startswith("_")}


def test_what_one_face_has_the_other_has():
    def public(it):
        return {name for name in dir(it) if not name.startswith("_")}

    pairs = [(getattr(leasehold, name), getattr(aio, name)) for name in public(aio) & public(leasehold)]
    pairs = [(sync, it) for sync, it in pairs if isinstance(it, type) and it is not sync]
    assert len(pairs) >= 8
    for sync, it in pairs:
        assert public(sync) <= public(it), it


# They were comments, which no editor shows.
def test_what_fields_mean_is_said_where_an_editor_shows_it():
    for module in ("options", "sources", "views"):
        body = re.findall(r"^class (\w+).*\n((?:(?:    .*)?\n)*)", (PACKAGE / f"{module}.py").read_text(), re.M)
        assert len(body) > 5
        assert [name for name, lines in body if re.search(r"^    #", lines, re.M)] == [], module
