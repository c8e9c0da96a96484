"""Holds requests against the types of the official SDKs: what those would not send, we do not.

Called with a folder of WIRE.NN.json files; prints what is wrong with each, and fails if anything is.
"""

import inspect
import json
import pathlib
import pkgutil
import sys
import typing

# Before the change below: these need the real one.
import pydantic
import typing_extensions

# An iterable is checked only when somebody walks it; a list is checked at once.
typing.Iterable = typing.List

import importlib

# Some take files, which no request here has.
FORBID = pydantic.ConfigDict(extra="forbid", arbitrary_types_allowed=True)


def closed(package):
    """Lets no TypedDict of a package have fields that it does not name."""
    names = [it.name for it in pkgutil.walk_packages(package.__path__, package.__name__ + ".")]
    for name in names:
        module = importlib.import_module(name)
        for kind in vars(module).values():
            if inspect.isclass(kind) and typing_extensions.is_typeddict(kind):
                kind.__pydantic_config__ = FORBID


def typed_dict(package, path):
    closed(importlib.import_module(package))
    module, name = path.rsplit(".", 1)
    adapter = pydantic.TypeAdapter(getattr(importlib.import_module(module), name))
    return lambda body: adapter.validate_python(body)


def anthropic():
    where = "anthropic.types.message_create_params.MessageCreateParamsStreaming"
    return typed_dict("anthropic.types", where)


def openai_chat():
    where = "openai.types.chat.completion_create_params.CompletionCreateParamsStreaming"
    return typed_dict("openai.types", where)


def openai_responses():
    where = "openai.types.responses.response_create_params.ResponseCreateParamsStreaming"
    return typed_dict("openai.types", where)


def gemini():
    from google.genai import types

    # The SDK's own call gathers these in one config; on the wire they stand beside each other.
    parts = {
        "contents": lambda it: [check(types.Content, one) for one in it],
        "systemInstruction": lambda it: check(types.Content, it),
        "tools": lambda it: [check(types.Tool, one) for one in it],
        "toolConfig": lambda it: check(types.ToolConfig, it),
        "generationConfig": lambda it: check(types.GenerationConfig, it),
    }

    def check(kind, value):
        # Only JSON has bytes as text.
        kind.model_validate_json(json.dumps(value))

    def whole(body):
        for name, value in body.items():
            if name not in parts:
                raise ValueError(f"{name} is no part of a request")
            parts[name](value)

    return whole


def ollama():
    from ollama._types import ChatRequest, Message, Tool

    # The SDK does not name these two; a server that does not either passes them over.
    newer = ["id", "tool_call_id"]

    def kept(given, read, path):
        """Unknown fields are dropped without a word: whatever was given must still be there."""
        if isinstance(given, dict) and isinstance(read, dict):
            for name, value in given.items():
                if name in read:
                    kept(value, read[name], f"{path}.{name}")
                elif name not in newer:
                    raise ValueError(f"{path}.{name} is no field")
        elif isinstance(given, list) and isinstance(read, list):
            for at, (one, other) in enumerate(zip(given, read)):
                kept(one, other, f"{path}[{at}]")

    def whole(body):
        read = ChatRequest.model_validate(body)
        kept(body, read.model_dump(by_alias=True), "request")
        # The request takes anything for these.
        for kind, name in [(Message, "messages"), (Tool, "tools")]:
            for at, one in enumerate(body.get(name, [])):
                read = kind.model_validate(one).model_dump(by_alias=True)
                kept(one, read, f"{name}[{at}]")

    return whole


WIRES = {
    "anthropic": anthropic,
    "openai-chat": openai_chat,
    "openai-responses": openai_responses,
    "gemini": gemini,
    "ollama": ollama,
}


def main(folder):
    wrong = 0
    made = {}
    files = sorted(pathlib.Path(folder).glob("*.json"))
    for file in files:
        wire = file.name.split(".")[0]
        check = made.setdefault(wire, None) or WIRES[wire]()
        made[wire] = check
        try:
            check(json.loads(file.read_text()))
        except (pydantic.ValidationError, ValueError) as error:
            wrong += 1
            print(f"{file.name}: {error}\n")
    print(f"{len(files)} requests over {len(made)} wires, {wrong} wrong")
    return 1 if wrong or not files else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
