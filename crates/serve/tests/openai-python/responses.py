"""Uses responses with the SDK of OpenAI, as its users do."""

import sys
import time

import openai
from openai import OpenAI
from pydantic import BaseModel


class Count(BaseModel):
    count: int


def raises(kind, work):
    try:
        work()
    except kind as error:
        assert type(error) is kind, repr(error)
        return error
    raise AssertionError(f"no {kind.__name__}")


base, token = sys.argv[1], sys.argv[2]
client = OpenAI(base_url=base, api_key=token)

# One response continues another.
first = client.responses.create(model="greeter", input="Hi")
assert [item.type for item in first.output] == ["message", "function_call", "function_call_output", "message"], first
assert first.output_text == "Let me look.Hello!", first.output_text
assert first.usage.total_tokens == 26, first.usage
second = client.responses.create(model="greeter", input="Again", previous_response_id=first.id)
assert second.output_text == "Hello again!", second
items = [{"role": "user", "content": "Hi"}]
items += [item.model_dump(exclude_none=True) for item in first.output]
items += [{"role": "user", "content": "Again"}]
echoed = client.responses.create(model="greeter", input=items, store=False)
assert echoed.output_text == "Hello again!", echoed
assert client.responses.retrieve(first.id).output_text == first.output_text

# A stream, as it is and accumulated.
text = ""
for event in client.responses.create(model="greeter", input="Hi", stream=True):
    if event.type == "response.output_text.delta":
        text += event.delta
assert text == "Let me look.Hello!", text
with client.responses.stream(model="greeter", input="Hi") as stream:
    seen = [(event.sequence_number, event.type) for event in stream]
    final = stream.get_final_response()
numbers = [number for number, _ in seen]
assert final.output_text == "Let me look.Hello!" and numbers == sorted(numbers), final
middle = next(number for number, kind in seen if kind == "response.content_part.done")
with client.responses.stream(response_id=final.id, starting_after=middle) as stream:
    rest = [event.sequence_number for event in stream]
assert rest == [number for number in numbers if number > middle], (rest, numbers)

# Tools of the client.
tools = [
    {
        "type": "function",
        "name": "pick__color",
        "description": "Picks a color",
        "parameters": {"type": "object", "properties": {"of": {"type": "string"}}},
        "strict": False,
    }
]
for streamed in (False, True):
    ask = {"model": "painter", "input": "Paint the door", "instructions": "The door is old.", "tools": tools}
    if streamed:
        with client.responses.stream(**ask) as stream:
            paused = stream.get_final_response()
    else:
        paused = client.responses.create(**ask)
    answered = {item.call_id for item in paused.output if item.type == "function_call_output"}
    (call,) = [item for item in paused.output if item.type == "function_call" and item.call_id not in answered]
    assert (call.name, call.arguments) == ("pick__color", '{"of":"door"}'), call
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "red"}
    done = client.responses.create(model="painter", input=[output], tools=tools, previous_response_id=paused.id)
    assert done.output_text == "Painted.", done

# Approvals.
waiting = client.responses.create(model="clerk", input="Pay")
(request,) = [item for item in waiting.output if item.type == "mcp_approval_request"]
assert (request.name, request.arguments) == ("pay", '{"euros":5}'), request
answer = {"type": "mcp_approval_response", "approval_request_id": request.id, "approve": True}
done = client.responses.create(model="clerk", input=[answer], previous_response_id=waiting.id)
assert done.output_text == "Done.", done

# Structured output.
parsed = client.responses.parse(model="counter", input="Count", text_format=Count)
assert parsed.output_parsed == Count(count=3), parsed

# In the background.
response = client.responses.create(model="slow", input="Go", background=True)
while response.status in ("queued", "in_progress"):
    time.sleep(0.2)
    response = client.responses.retrieve(response.id)
assert response.output_text == "Late.", response
response = client.responses.create(model="slow", input="Go", background=True)
while len(client.responses.retrieve(response.id).output) < 2:
    time.sleep(0.02)
assert client.responses.cancel(response.id).status == "cancelled"
client.responses.delete(response.id)
raises(openai.NotFoundError, lambda: client.responses.retrieve(response.id))

# Errors.
missing = raises(openai.NotFoundError, lambda: client.responses.create(model="nobody", input="Hi"))
assert missing.param == "model", missing
raises(openai.BadRequestError, lambda: client.responses.create(model="greeter", input=[]))
failed = raises(openai.InternalServerError, lambda: client.responses.create(model="broken", input="Hi"))
assert "out of order" in failed.message, failed
events = list(client.responses.create(model="broken", input="Hi", stream=True))
assert events[-1].type == "response.failed" and "out of order" in events[-1].response.error.message, events
print("ok")
