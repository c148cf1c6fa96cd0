"""How each error is told to an editor: one table."""

from __future__ import annotations

import logging

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from offload.domain.errors import CallerError, Defect, EnvironmentFailure, InvalidRequest, OffloadError, WorkerError
from offload.wire import convert

logger = logging.getLogger(__name__)

# By class, for it and all below it; the nearest one counts.
CODES: dict[type[OffloadError], int] = {
    InvalidRequest: types.ErrorCodes.InvalidParams,
    CallerError: types.LSPErrorCodes.RequestFailed,
    WorkerError: types.LSPErrorCodes.RequestFailed,
    EnvironmentFailure: types.LSPErrorCodes.RequestFailed,
    Defect: types.ErrorCodes.InternalError,
    OffloadError: types.ErrorCodes.InternalError,
}


def response_error(error: BaseException) -> types.ResponseError:
    """The error answer; `data` is the same view that every other front gets."""
    if isinstance(error, OffloadError):
        code = next(CODES[kind] for kind in type(error).__mro__ if kind in CODES)
        return types.ResponseError(
            code=int(code), message=str(error), data=convert.error(error).model_dump(mode="json")
        )
    if isinstance(error, JsonRpcException):
        return types.ResponseError(code=error.code, message=error.message)
    logger.error("a handler failed", exc_info=error)
    return types.ResponseError(code=types.ErrorCodes.InternalError, message="offload failed; see the hub's log")
