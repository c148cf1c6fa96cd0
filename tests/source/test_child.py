"""The parser's side of the pipe."""

import io
import json

from offload.source.child import serve


def test_the_child_answers_each_request_with_its_number_until_the_requests_end():
    first, second = b"def f():\n    pass\n", "// é\nfunction g() {}\n".encode()
    requests = io.BytesIO(b"7 python %d\n%s8 javascript %d\n%s" % (len(first), first, len(second), second))
    answers = io.BytesIO()
    serve(requests, answers)
    assert [json.loads(line) for line in answers.getvalue().splitlines()] == [
        [7, [["f", "function", 0, 0, 1, 8]]],
        [8, [["g", "function", 1, 0, 1, 15]]],
    ]
