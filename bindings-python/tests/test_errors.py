import pickle

import pytest

import leasehold
from leasehold import errors
from leasehold._leasehold import trial

CLASSES = {it.code: it for it in vars(errors).values() if isinstance(it, type) and it is not errors.LeaseholdError and issubclass(it, errors.LeaseholdError)}


def test_every_code_has_its_class_and_every_class_its_code():
    assert set(CLASSES) == set(trial.codes())
    assert set(errors.__all__) == {it.__name__ for it in CLASSES.values()} | {"LeaseholdError"}
    assert set(errors.__all__) < set(leasehold.__all__)


@pytest.mark.parametrize("code", sorted(CLASSES))
def test_rust_raises_the_class_of_the_code(code):
    with pytest.raises(errors.LeaseholdError, match="^what to do$") as caught:
        trial.fail(code, "what to do")
    assert type(caught.value) is CLASSES[code]
    assert caught.value.code == code
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (type(copy), copy.args) == (type(caught.value), caught.value.args)
    assert caught.value.field is None


def test_classes_fit_what_python_expects():
    assert issubclass(errors.TimedOut, TimeoutError)
    assert issubclass(errors.InvalidArgument, ValueError)
    assert issubclass(errors.LeaseholdError, Exception)


def test_a_refused_argument_is_named():
    with pytest.raises(errors.InvalidArgument) as caught:
        leasehold.open(namespace=7)
    assert caught.value.field == "namespace"
    assert pickle.loads(pickle.dumps(caught.value)).field == "namespace"
