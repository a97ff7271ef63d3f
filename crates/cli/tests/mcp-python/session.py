"""Uses `patter serve --tools` with MCP clients for Python, as their users do: over HTTP and stdio, in the newest protocol (`auto`)
and the older one (`legacy`).

Arguments: the client (`mcp` or `fastmcp`), the folder of the project, the URL of the server, and the command that starts one.
"""

import asyncio
import pathlib
import sys

import fastmcp
import mcp
from fastmcp.client.elicitation import ElicitResult as FastElicitResult
from fastmcp.client.transports import StdioTransport
from mcp_types import ElicitResult

kind, folder, url, *command = sys.argv[1:]
folder = pathlib.Path(folder)
PLAN = {"path": "plan.txt", "content": "buy milk"}


class Person:
    """Answers questions, and remembers them."""

    def __init__(self):
        self.approve = True
        self.questions = []

    def answer(self, message):
        self.questions.append(message)
        if message.startswith("Pay it back?"):
            # The answer is a yes or a no, so this one is asked for again.
            return {"answer": True} if "not accepted" in message else {"answer": "perhaps"}
        return {"approve": True} if self.approve else None

    async def for_mcp(self, context, params):
        content = self.answer(params.message)
        return ElicitResult(action="accept", content=content) if content else ElicitResult(action="decline")

    async def for_fastmcp(self, message, response_type, params, context):
        content = self.answer(message)
        return FastElicitResult(action="accept", content=content) if content else FastElicitResult(action="decline")


class Mcp:
    """The client of the package `mcp`."""

    def __init__(self, transport, mode, person):
        callback = person.for_mcp if person else None
        server = url
        if transport == "stdio":
            program, *arguments = command
            server = mcp.StdioServerParameters(command=program, args=arguments, env={"PATTER_TRUST": "1"}, cwd=folder)
        self.client = mcp.Client(server, mode=mode, elicitation_callback=callback, read_timeout_seconds=30)

    async def call(self, name, arguments, progress=None):
        result = await self.client.call_tool(name, arguments, progress_callback=progress)
        return result.is_error, result.structured_content, "".join(part.text for part in result.content)

    async def tools(self):
        return {tool.name: tool.model_dump(by_alias=True) for tool in (await self.client.list_tools()).tools}

    async def resource(self, uri):
        return (await self.client.read_resource(uri)).contents[0].text


class FastMcp:
    """The client of the package `fastmcp`."""

    def __init__(self, transport, mode, person):
        handler = person.for_fastmcp if person else None
        server = url
        if transport == "stdio":
            program, *arguments = command
            server = StdioTransport(program, arguments, env={"PATTER_TRUST": "1"}, cwd=str(folder), keep_alive=False)
        self.client = fastmcp.Client(server, mode=mode, elicitation_handler=handler, timeout=30)

    async def call(self, name, arguments, progress=None):
        result = await self.client.call_tool(name, arguments, progress_handler=progress, raise_on_error=False)
        return result.is_error, result.structured_content, "".join(part.text for part in result.content)

    async def tools(self):
        return {tool.name: tool.model_dump(by_alias=True) for tool in await self.client.list_tools()}

    async def resource(self, uri):
        return (await self.client.read_resource(uri))[0].text


KINDS = {"mcp": Mcp, "fastmcp": FastMcp}


async def use(session, person):
    tools = await session.tools()
    assert {"ask_greeter", "ask_counter", "ask_clerk", "calculator", "fs__writeFile"} <= tools.keys(), tools.keys()
    assert "dateTime__now" not in tools, "the project denies it"
    hints = tools["fs__writeFile"]["annotations"]
    assert hints["readOnlyHint"] is False and hints["destructiveHint"] is True, hints
    assert tools["calculator"]["annotations"]["readOnlyHint"] is True

    # An agent, with progress, and a session that continues.
    steps = []

    async def progress(done, total, message):
        steps.append((done, message))

    failed, structured, text = await session.call("ask_greeter", {"message": "Hi"}, progress)
    assert not failed and text == "Hello!", text
    assert [done for done, _ in steps] == sorted({done for done, _ in steps}) and steps, steps
    assert any("model call" in message for _, message in steps), steps
    again = {"message": "Hi", "session": structured["session"]}
    assert (await session.call("ask_greeter", again))[2] == "Hello again!"

    # Structured answers, which clients check against the schema.
    assert (await session.call("ask_counter", {"message": "Count"}))[1] == {"count": 3}

    # A tool, which needs no agent.
    failed, _, text = await session.call("calculator", {"expression": "6 * 7"})
    assert not failed and "42" in text, text

    # Approvals, of a call that an agent makes and of one that the client makes.
    plan = folder / "plan.txt"
    for name, arguments in [("ask_clerk", {"message": "Write"}), ("fs__writeFile", PLAN)]:
        for approve in [False, True]:
            person.approve, person.questions = approve, []
            plan.unlink(missing_ok=True)
            failed, _, text = await session.call(name, arguments)
            assert len(person.questions) == 1 and "fs/writeFile" in person.questions[0], person.questions
            assert plan.exists() == approve, (name, approve, text)
            if name == "fs__writeFile":
                assert failed != approve and (approve or "did not approve" in text), text
    assert plan.read_text() == "buy milk"

    # The question of a workflow, which is asked again until its answer has the right type.
    person.questions = []
    failed, _, text = await session.call("ask_deciding", {"message": "Go"})
    assert not failed and text == "Paid back." and len(person.questions) == 2, (text, person.questions)

    assert (await session.resource("patter://agents/greeter.gram")).startswith("[greeter:Agent")
    prompt = await session.client.get_prompt("greeter", {"message": "Hi"})
    assert prompt.messages[0].content.text == "Greet.\n\nHi", prompt

    # Errors that a model can act on, and those that it cannot.
    failed, _, text = await session.call("calculator", {"expression": 7})
    assert failed and "`expression`" in text, text
    for name in ["ask_nobody", "dateTime__now"]:
        try:
            await session.call(name, {})
        except Exception as error:
            assert f"there is no tool `{name}`" in str(error), repr(error)
        else:
            raise AssertionError(name)


async def check(transport, mode):
    person = Person()
    session = KINDS[kind](transport, mode, person)
    async with session.client:
        await use(session, person)
    # A client that cannot ask is refused.
    (folder / "plan.txt").unlink()
    session = KINDS[kind](transport, mode, None)
    async with session.client:
        try:
            failed, _, text = await session.call("fs__writeFile", PLAN)
        except Exception as error:
            failed, text = True, str(error)
        assert failed and ("cannot ask" in text or "capability" in text), text
    assert not (folder / "plan.txt").exists()


async def main():
    for transport in ["http", "stdio"]:
        for mode in ["auto", "legacy"]:
            print(transport, mode, file=sys.stderr)
            await check(transport, mode)
    print("ok")


asyncio.run(asyncio.wait_for(main(), 100))
