"""The error tree, as it is drawn and as it is."""

import inspect
import re

import pytest

from offload.domain import errors
from offload.domain.errors import ApplyRefused, Defect, OffloadError, all_errors
from offload.domain.lifecycle import IllegalTransition

DEFINED = [each for each in vars(errors).values() if inspect.isclass(each) and issubclass(each, OffloadError)]


def drawn(docstring):
    """(class, its parent) for every line of the drawing; a name's column says how deep it stands."""
    above, found = [], {}
    for line in docstring.splitlines():
        match = re.match(r"^    ([│├└─ ]*)([A-Z]\w+)", line)
        if match:
            depth = len(match[1]) // 4
            above[depth:] = [match[2]]
            found[match[2]] = above[depth - 1] if depth else None
    return found


def test_the_tree_in_the_docstring_is_the_tree_of_the_classes():
    tree = {each.__name__: each.__bases__[0].__name__ if each is not OffloadError else None for each in DEFINED}
    assert drawn(errors.__doc__) == tree


def test_every_class_has_a_code_of_its_own_that_is_its_name_in_words():
    codes = {each: each.__dict__.get("code") for each in DEFINED if each is not OffloadError}
    assert len(set(codes.values())) == len(codes)
    assert {each.__name__: code for each, code in codes.items()} == {
        each.__name__: re.sub(r"(?<!^)(?=[A-Z])", "_", each.__name__).lower() for each in codes
    }


def test_all_errors_lists_every_class_parents_first():
    listed = all_errors()
    assert set(DEFINED) <= set(listed)
    assert len(set(listed)) == len(listed)
    for number, each in enumerate(listed[1:], start=1):
        assert each.__bases__[0] in listed[:number]


def test_an_illegal_transition_is_told_as_a_defect():
    assert IllegalTransition in all_errors()
    assert IllegalTransition.code == Defect.code


@pytest.mark.parametrize("error", [each for each in DEFINED if each is not ApplyRefused])
def test_an_error_is_its_sentence(error):
    assert str(error("do this instead")) == "do this instead"


def test_a_refused_apply_names_every_file_and_its_reason():
    refused = ApplyRefused("nothing was written", (("a.py", "conflict"),))
    assert (str(refused), refused.reasons) == ("nothing was written", (("a.py", "conflict"),))
    assert ApplyRefused("nothing was written").reasons == ()
