"""Sends requests that the SDK sends again, because it gives up or the connection breaks."""

import sys

import openai
from openai import OpenAI

base, token, kind, route = sys.argv[1:5]
timeout, retries = {"broken": (20, 2), "impatient": (0.4, 4), "hopeless": (0.2, 0)}[kind]
client = OpenAI(base_url=base, api_key=token, timeout=timeout, max_retries=retries)


def ask(stream):
    if route == "chat":
        messages = [{"role": "user", "content": f"Go {stream}"}]
        reply = client.chat.completions.create(model="slow", messages=messages, stream=stream)
        if not stream:
            return reply.choices[0].message.content
        return "".join(choice.delta.content or "" for chunk in reply for choice in chunk.choices)
    reply = client.responses.create(model="slow", input=f"Go {stream}", stream=stream)
    if not stream:
        return reply.output_text
    return "".join(event.delta for event in reply if event.type == "response.output_text.delta")


try:
    answer = ask(False)
    assert answer == "Late.", answer
    assert kind != "hopeless"
except openai.APITimeoutError:
    assert kind == "hopeless"
if kind == "broken":
    answer = ask(True)
    assert answer == "Late.", answer
print("ok")
