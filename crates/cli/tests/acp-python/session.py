"""Drives whole sessions with the SDK of the protocol, as an editor does."""

import asyncio
import os
import sys
from pathlib import Path

from acp import RequestError, spawn_agent_process, text_block
from acp.schema import (
    AgentMessageChunk,
    AllowedOutcome,
    DeniedOutcome,
    RequestPermissionResponse,
    SessionInfoUpdate,
    ToolCallProgress,
    ToolCallStart,
    UserMessageChunk,
)

program, folder = sys.argv[1], sys.argv[2]


class Editor:
    """Remembers what it learns, and decides as it is told."""

    def __init__(self):
        self.updates = []
        self.decision = None
        self.asked = asyncio.Event()

    async def request_permission(self, session_id, tool_call, options, **_):
        assert [option.kind for option in options] == ["allow_once", "reject_once"], options
        assert tool_call.raw_input == {"euros": 5}, tool_call
        self.asked.set()
        if self.decision is None:
            await asyncio.sleep(0.2)
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        outcome = AllowedOutcome(outcome="selected", option_id=self.decision)
        return RequestPermissionResponse(outcome=outcome)

    async def session_update(self, session_id, update, **_):
        self.updates.append(update)

    def text(self, kind=AgentMessageChunk):
        return "".join(update.content.text for update in self.updates if isinstance(update, kind))

    def statuses(self):
        calls = [update for update in self.updates if isinstance(update, (ToolCallStart, ToolCallProgress))]
        return [call.status for call in calls]


def paid():
    path = Path(folder, "paid.txt")
    return len(path.read_text().splitlines()) if path.exists() else 0


async def raises(code, work):
    try:
        await work
    except RequestError as error:
        assert error.code == code, (error.code, error)
        return str(error)
    raise AssertionError(f"no error {code}")


def start(editor):
    return spawn_agent_process(editor, program, "serve", "--acp", cwd=folder, env=dict(os.environ))


async def main():
    editor = Editor()
    async with start(editor) as (agent, process):
        initialized = await agent.initialize(protocol_version=1)
        assert initialized.protocol_version == 1 and initialized.agent_capabilities.load_session
        created = await agent.new_session(cwd=folder, mcp_servers=[])
        assert created.modes.current_mode_id == "boss", created
        session = created.session_id

        async def prompt(text, session=session):
            editor.updates.clear()
            return (await agent.prompt(session_id=session, prompt=[text_block(text)])).stop_reason

        await agent.set_config_option(config_id="agent", session_id=session, value="clerk")
        editor.decision = "allow"
        assert await prompt("Pay") == "end_turn"
        assert editor.text() == "Paid." and paid() == 1
        assert editor.statuses() == ["pending", "in_progress", "completed"], editor.updates
        assert isinstance(editor.updates[-1], SessionInfoUpdate) and editor.updates[-1].title == "Pay"

        editor.decision = "reject"
        assert await prompt("Pay again") == "end_turn"
        assert editor.text() == "Not paid." and paid() == 1
        assert editor.statuses() == ["pending", "failed"], editor.updates

        # Cancelled while the user is asked, and while the model replies.
        editor.decision = None
        editor.asked.clear()
        running = asyncio.create_task(prompt("Pay again"))
        await editor.asked.wait()
        await agent.cancel(session_id=session)
        assert await running == "cancelled" and paid() == 1
        other = await agent.new_session(cwd=folder, mcp_servers=[])
        await agent.set_session_mode(session_id=other.session_id, mode_id="slow")
        running = asyncio.create_task(prompt("Wait", other.session_id))
        await asyncio.sleep(0.3)
        await agent.cancel(session_id=other.session_id)
        assert await asyncio.wait_for(running, 10) == "cancelled"

        message = await raises(-32602, agent.new_session(cwd="here", mcp_servers=[]))
        assert message == "`cwd`: is not an absolute path", message
        await raises(-32002, agent.prompt(session_id="none", prompt=[text_block("?")]))
        await raises(-32601, agent.fork_session(session_id=session, cwd=folder))

    editor = Editor()
    async with start(editor) as (agent, process):
        await agent.initialize(protocol_version=1)
        listed = await agent.list_sessions(cwd=folder)
        assert [info.session_id for info in listed.sessions] == [other.session_id, session], listed
        loaded = await agent.load_session(cwd=folder, session_id=session, mcp_servers=[])
        assert loaded.modes.current_mode_id == "clerk", loaded
        assert editor.text(UserMessageChunk) == "PayPay againPay again", editor.updates
        assert editor.text() == "Paid.Not paid."
        editor.updates.clear()
        editor.decision = "allow"
        # The cancelled prompt ended before the answer to it.
        for text in ["Why not?", "Pay again"]:
            answer = await agent.prompt(session_id=session, prompt=[text_block(text)])
            assert answer.stop_reason == "end_turn", answer
        assert editor.text() == "Not paid.Not paid." and paid() == 2, editor.updates
        await agent.close_session(session_id=session)
        process.stdin.close()
        assert await asyncio.wait_for(process.wait(), 10) == 0
    print("ok")


asyncio.run(main())
