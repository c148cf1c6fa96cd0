"""A stock pygls server over stdio, with as little in it as can be."""

from lsprotocol import types
from pygls.lsp.server import LanguageServer

server = LanguageServer("stock", "0")


@server.feature(types.TEXT_DOCUMENT_CODE_LENS)
def code_lens(_params: types.CodeLensParams) -> list[types.CodeLens]:
    return []


server.start_io()
