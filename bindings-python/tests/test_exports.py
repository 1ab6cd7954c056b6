"""What the package exports."""

import re
from pathlib import Path

import leasehold

PACKAGE = Path(leasehold.__file__).parent


def test_every_public_module_is_exported_by_its_name():
    """Type checkers take for private what a typed package imports, unless it is imported as itself."""
    modules = {it.stem for it in PACKAGE.iterdir() if it.suffix == ".py" or (it / "__init__.py").exists()}
    exported = re.findall(r"^from \. import (\w+) as \1$", (PACKAGE / "__init__.py").read_text(), re.M)
    assert {it for it in exported if not it.startswith("_")} == {it for it in modules if not it.startswith("_")}
