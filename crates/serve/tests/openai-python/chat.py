"""Uses the server with the SDK of OpenAI, as its users do."""

import sys
from typing import List

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
user = [{"role": "user", "content": "Hi"}]

models = [model.id for model in client.models.list()]
assert "greeter" in models, models
assert client.models.retrieve("greeter").owned_by == "patter"

completion = client.chat.completions.create(model="greeter", messages=user)
assert completion.choices[0].message.content == "Let me look.\n\nHello!", completion
assert completion.choices[0].finish_reason == "stop"
assert completion.usage.total_tokens == 26
assert completion.usage.prompt_tokens_details.cached_tokens == 8

# A stream, with the tokens used at its end.
text, usage, finish = "", None, []
stream = client.chat.completions.create(
    model="greeter", messages=user, stream=True, stream_options={"include_usage": True}
)
for chunk in stream:
    for choice in chunk.choices:
        text += choice.delta.content or ""
        if choice.finish_reason:
            finish.append(choice.finish_reason)
    usage = chunk.usage or usage
assert (text, finish, usage.total_tokens) == ("Let me look.\n\nHello!", ["stop"], 26), (text, finish, usage)

# The helper for streams accumulates chunks.
with client.chat.completions.stream(model="greeter", messages=user) as stream:
    kinds = {event.type for event in stream}
    final = stream.get_final_completion()
assert final.choices[0].message.content == "Let me look.\n\nHello!", final
assert "content.done" in kinds, kinds

# Each event of the run is a chunk that other code can read.
events = client.chat.completions.create(
    model="greeter", messages=user, stream=True, extra_headers={"X-Patter-Events": "1"}
)
seen = [chunk.patter["event"] for chunk in events if getattr(chunk, "patter", {}).get("event")]
assert "tool_finished" in seen, seen

# Tools of the client.
tools = [
    {
        "type": "function",
        "function": {
            "name": "pick__color",
            "description": "Picks a color",
            "parameters": {"type": "object", "properties": {"of": {"type": "string"}}},
        },
    }
]
messages: List = [
    {"role": "system", "content": "The door is old."},
    {"role": "user", "content": "Paint the door"},
]
for streamed in (False, True):
    talk = list(messages)
    if streamed:
        with client.chat.completions.stream(model="painter", messages=talk, tools=tools) as stream:
            choice = stream.get_final_completion().choices[0]
    else:
        choice = client.chat.completions.create(model="painter", messages=talk, tools=tools).choices[0]
    assert choice.finish_reason == "tool_calls", choice
    (call,) = choice.message.tool_calls
    assert (call.function.name, call.function.arguments) == ("pick__color", '{"of":"door"}'), call
    talk += [
        choice.message.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": call.id, "content": "red"},
    ]
    done = client.chat.completions.create(model="painter", messages=talk, tools=tools)
    assert done.choices[0].message.content == "Painted.", done

# Structured output.
parsed = client.chat.completions.parse(model="counter", messages=user, response_format=Count)
assert parsed.choices[0].message.parsed == Count(count=3), parsed
with client.chat.completions.stream(model="counter", messages=user, response_format=Count) as stream:
    assert stream.get_final_completion().choices[0].message.parsed == Count(count=3)

# Errors.
missing = raises(openai.NotFoundError, lambda: client.chat.completions.create(model="nobody", messages=user))
assert (missing.code, missing.param, missing.type) == ("model_not_found", "model", "invalid_request_error"), missing
wrong = raises(openai.BadRequestError, lambda: client.chat.completions.create(model="greeter", messages=[]))
assert wrong.param == "messages", wrong
stranger = OpenAI(base_url=base, api_key="not-the-right-token")
raises(openai.AuthenticationError, lambda: stranger.models.list())
failed = raises(openai.InternalServerError, lambda: client.chat.completions.create(model="broken", messages=user))
assert "out of order" in failed.message and failed.code == "model_error", failed
broken = client.chat.completions.create(model="broken", messages=user, stream=True)
failed = raises(openai.APIError, lambda: list(broken))
assert "out of order" in failed.message, failed
print("ok")
