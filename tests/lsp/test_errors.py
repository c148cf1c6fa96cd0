"""Every error of the tree has its code for editors."""

import pytest

from offload.domain.errors import ApplyRefused, all_errors
from offload.lsp.errors import response_error

REQUEST_FAILED, INVALID_PARAMS, INTERNAL = -32803, -32602, -32603
NOT_FAILED = {"error": INTERNAL, "invalid_request": INVALID_PARAMS, "defect": INTERNAL, "illegal_transition": INTERNAL}


@pytest.mark.parametrize("kind", all_errors(), ids=lambda kind: kind.code)
def test_every_error_is_told_with_its_code_and_its_sentence(kind):
    error = ApplyRefused("what to do", (("a.py", "conflict"),)) if kind is ApplyRefused else Exception.__new__(kind)
    error.args = ("what to do",)
    told = response_error(error)
    assert told.code == NOT_FAILED.get(kind.code, REQUEST_FAILED)
    assert told.message == "what to do"
    assert told.data["code"] == kind.code
    assert told.data["reasons"] == (["a.py: conflict"] if kind is ApplyRefused else [])
