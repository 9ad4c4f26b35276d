"""The real openai and anthropic clients, told by clients_test.go what to do: clients.py URL WHAT [NAME=VALUE ...].

Prints one JSON object: for each call what came back, or the exception, and each attempt on the wire. It judges
nothing; the test does.
"""

import importlib
import json
import sys
import time

url, what, *rest = sys.argv[1:]
given = dict(pair.split("=", 1) for pair in rest)
model = given.get("model", "tiny")
retries = int(given.get("retries", "2"))
text = "x" * int(given.get("bytes", "5"))


class Wire:
    """Every attempt that a client makes, with its status and what it was told about coming back."""

    def __init__(self):
        self.attempts = []

    def sent(self, request):
        self.attempts.append({"at": time.monotonic()})

    def answered(self, response):
        last = self.attempts[-1]
        last["answered"] = time.monotonic()
        last["status"] = response.status_code
        for header in ("retry-after", "retry-after-ms", "x-should-retry", "x-weir-reason"):
            last[header] = response.headers.get(header, "")

    def hooks(self):
        # No proxy of the environment's: Envoy is on this machine.
        return {"trust_env": False, "event_hooks": {"request": [self.sent], "response": [self.answered]}}


def openai_client(wire):
    return openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=retries,
                         http_client=openai.DefaultHttpxClient(**wire.hooks()))


def anthropic_client(wire):
    return anthropic.Anthropic(base_url=url, api_key="none", max_retries=retries,
                               http_client=anthropic.DefaultHttpxClient(**wire.hooks()))


said = [{"role": "user", "content": text}]


def chat(wire):
    answer = openai_client(wire).chat.completions.create(model=model, messages=said, max_tokens=8)
    return answer.choices[0].message.content, answer.usage.completion_tokens


def chat_stream(wire):
    stream = openai_client(wire).chat.completions.create(model=model, messages=said, max_tokens=8, stream=True,
                                                         stream_options={"include_usage": True})
    words, tokens = "", None
    for chunk in stream:
        if chunk.choices:
            words += chunk.choices[0].delta.content or ""
        if chunk.usage:
            tokens = chunk.usage.completion_tokens
    return words, tokens


def completions(wire):
    answer = openai_client(wire).completions.create(model=model, prompt=text, max_tokens=8)
    return answer.choices[0].text, answer.usage.completion_tokens


def completions_stream(wire):
    stream = openai_client(wire).completions.create(model=model, prompt=text, max_tokens=8, stream=True,
                                                    stream_options={"include_usage": True})
    words, tokens = "", None
    for chunk in stream:
        if chunk.choices:
            words += chunk.choices[0].text
        if chunk.usage:
            tokens = chunk.usage.completion_tokens
    return words, tokens


def responses(wire):
    answer = openai_client(wire).responses.create(model=model, input=text, max_output_tokens=8)
    return answer.output_text, answer.usage.output_tokens


def responses_stream(wire):
    words, tokens = "", None
    for event in openai_client(wire).responses.create(model=model, input=text, max_output_tokens=8, stream=True):
        if event.type == "response.output_text.delta":
            words += event.delta
        if event.type == "response.completed":
            tokens = event.response.usage.output_tokens
    return words, tokens


def messages(wire):
    answer = anthropic_client(wire).messages.create(model=model, messages=said, max_tokens=8)
    return answer.content[0].text, answer.usage.output_tokens


def messages_stream(wire):
    with anthropic_client(wire).messages.stream(model=model, messages=said, max_tokens=8) as stream:
        answer = stream.get_final_message()
    return answer.content[0].text, answer.usage.output_tokens


def chunks(stream):
    """All that a stream shows its client, but for what differs from one to the next."""
    shown = [chunk.model_dump(exclude_unset=True, exclude={"id", "created"}) for chunk in stream]
    return json.dumps(shown, sort_keys=True), len(shown)


def chat_unasked(wire):
    """A stream whose usage the client does not ask for."""
    return chunks(openai_client(wire).chat.completions.create(model=model, messages=said, max_tokens=8, stream=True))


def chat_declined(wire):
    return chunks(openai_client(wire).chat.completions.create(model=model, messages=said, max_tokens=8, stream=True,
                                                              stream_options={"include_usage": False}))


def completions_unasked(wire):
    return chunks(openai_client(wire).completions.create(model=model, prompt=text, max_tokens=8, stream=True))


def chat_asked(wire):
    return chunks(openai_client(wire).chat.completions.create(model=model, messages=said, max_tokens=8, stream=True,
                                                              stream_options={"include_usage": True}))


everything = [chat, chat_stream, completions, completions_stream, responses, responses_stream, messages, messages_stream]
streams = [chat_unasked, chat_declined, completions_unasked, chat_asked]
known = {c.__name__: c for c in everything + streams}
calls = everything if what == "everything" else [known[name] for name in what.split(",")]
# Only what is used: importing a client takes a second or two.
errors = ()
for library in {"anthropic" if call.__name__.startswith("messages") else "openai" for call in calls}:
    globals()[library] = importlib.import_module(library)
    errors += (globals()[library].APIStatusError,)
results = {}
for call in calls:
    wire, result = Wire(), {}
    try:
        result["text"], result["tokens"] = call(wire)
    except errors as e:
        body = e.body if isinstance(e.body, dict) else {}
        # openai unwraps the error of the body, anthropic does not.
        error = body.get("error", body)
        result["exception"] = type(e).__module__.split(".")[0] + "." + type(e).__name__
        result["message"] = error.get("message")
        result["type"] = error.get("type")
        result["code"] = error.get("code")
        result["shown"] = str(e)
    result["attempts"] = wire.attempts
    results[call.__name__] = result
json.dump(results, sys.stdout)
