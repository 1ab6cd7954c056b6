"""Interpreters within one process."""

import subprocess
import sys

SECOND = """
import leasehold
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    import _interpreters as interpreters
interpreters.run_string(interpreters.create(), '''
try:
    import leasehold
except ImportError as error:
    print("refused:", error, flush=True)
''')
try:
    leasehold.open(5)
except leasehold.InvalidArgument:
    print("goes on")
"""


# On 3.10 and 3.11 it succeeded, and what was raised there had the classes of the first: no `except` of the second caught it.
def test_a_second_interpreter_is_refused_at_the_import():
    told = subprocess.run([sys.executable, "-c", SECOND], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    refused, *rest = told.stdout.splitlines() or [told.stderr]
    assert refused.startswith("refused: ") and rest == ["goes on"]
    # Later ones refuse it by themselves.
    if sys.version_info < (3, 12):
        assert "WSGIApplicationGroup %{GLOBAL}" in refused
