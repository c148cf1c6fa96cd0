"""Editors connected to a whole core on fakes, and to a small server that shows the hosting alone."""

import asyncio

import pytest

from offload.core.caller import Caller
from offload.core.ports import DocumentEdit
from offload.domain.task import Front
from offload.domain.text import Encoding
from offload.lsp.applying import PATIENCE, Patience
from offload.lsp.conversion import shared_converter
from offload.lsp.protocol import HostedProtocol
from offload.lsp.server import HostedServer, serve_editor
from offload.lsp.serving import serve_connection
from tests.fakes.house import open_house
from tests.lsp.client import Client, pair
from tests.lsp.screen import Screen

# All that is waited for must come.
PATIENT = Patience(answer_s=60, seen_s=60, moved_s=60)

EDITING = {"workspace": {"applyEdit": True, "workspaceEdit": {"documentChanges": True}}}
EVERYTHING = {
    "window": {"workDoneProgress": True, "showDocument": {"support": True}},
    "workspace": {"codeLens": {"refreshSupport": True}},
    "textDocument": {"codeLens": {}},
}


@pytest.fixture
async def house(tmp_path):
    async with open_house(tmp_path) as house:
        yield house


@pytest.fixture
async def clients():
    """Those that a test has opened; each connection must end by itself once its editor is gone."""
    clients = []
    yield clients
    for client in clients:
        await client.disconnect()
    for client in clients:
        async with asyncio.timeout(20):
            await client.served


@pytest.fixture
def connect(house, clients):
    """Opens a connection to the editor front, initialized unless told otherwise."""

    async def connect(capabilities=None, *, initialize=True, name="lsp-1", patience=PATIENCE, **options):
        ours, theirs = await pair()
        client = Client(*theirs)
        caller = Caller(Front.EDITOR, name, house.root, "", {"PATH": "/usr/bin"})
        client.served = asyncio.create_task(serve_editor(house.delegation, caller, *ours, patience=patience))
        clients.append(client)
        if initialize:
            options.setdefault("folders", [house.root])
            await client.initialize(EVERYTHING if capabilities is None else capabilities, **options)
        return client

    return connect


@pytest.fixture
def editing(connect):
    """A connection whose documents are on a screen."""

    async def editing(capabilities=EDITING, patience=PATIENT, encoding=Encoding.UTF_16, **options):
        client = await connect(capabilities, patience=patience, encodings=[encoding.value], **options)
        return Screen(client, encoding)

    return editing


@pytest.fixture
def edit(house):
    """Changes documents as core does; each is (path, version, before, after)."""

    async def edit(*changes):
        editor = house.delegation.documents.editor("lsp-1")
        return await editor.edit("tests", [DocumentEdit(*change) for change in changes])

    return edit


@pytest.fixture
def host(clients):
    """Serves a server that the test has filled, without any core; gives the client, not yet initialized."""

    async def host(register=lambda server: None, limits=None):
        server = HostedServer("demo", "1", protocol_cls=HostedProtocol, converter_factory=shared_converter)
        register(server)

        async def farewell():
            pass

        ours, theirs = await pair()
        client = Client(*theirs)
        client.protocol = server.protocol
        client.served = asyncio.create_task(serve_connection(server.protocol, *ours, farewell, limits))
        clients.append(client)
        return client

    return host
