"""A stand-in for a language model provider, for scripts/try_agents.py: it calls one memory tool.

It implements what the agents need of four APIs: Anthropic Messages, OpenAI Responses, OpenAI Chat
Completions and Gemini generateContent. It keeps every request, to show what reached the model.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODEL = "stand-in"
DONE = "Noted, all done."
Events = Iterator[tuple[str, dict[str, Any]]]


class Provider:
    """A server that runs within the `with` block and calls the tool whose name ends with `tool`."""

    def __init__(self, tool: str, arguments: dict[str, Any]) -> None:
        self.tool = tool
        self.arguments = arguments
        self.requests: list[tuple[str, dict[str, Any]]] = []
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                _send(
                    self,
                    "application/json",
                    json.dumps({"data": [], "models": [], "object": "list"}),
                )

            def do_POST(self) -> None:
                body = json.loads(
                    self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}"
                )
                provider.requests.append((self.path, body))
                _send(self, *provider.answer(self.path, body))

            def log_message(self, *_: Any) -> None:
                """Log nothing: the requests are kept instead."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Provider:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path: str, body: dict[str, Any]) -> tuple[str, str]:
        if "count_tokens" in path or "countTokens" in path:
            return "application/json", json.dumps({"input_tokens": 100, "totalTokens": 100})
        wanted = None if self._was_called(body) else self._offered(body)
        if "/responses" in path:
            return "text/event-stream", _typed(_responses(wanted, self.arguments))
        if "/chat/completions" in path:
            return _chat(wanted, self.arguments, bool(body.get("stream")))
        if "enerateContent" in path:
            return _gemini(wanted, self.arguments, "stream" in path)
        if not body.get("stream"):
            return "application/json", json.dumps(_message(wanted, self.arguments))
        return "text/event-stream", _typed(_messages(wanted, self.arguments))

    def _offered(self, body: dict[str, Any]) -> dict[str, Any] | None:
        return next(
            (tool for tool in tools_in(body) if str(tool["name"]).endswith(self.tool)), None
        )

    def _was_called(self, body: dict[str, Any]) -> bool:
        return bool(results_in(body))


def tools_in(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return every tool of a request in any of the APIs, with `name` and optional `namespace`."""
    found: list[dict[str, Any]] = []
    for tool in body.get("tools") or ():
        inner = tool.get("functionDeclarations") or tool.get("tools")
        if inner:
            found += [{**one, "namespace": tool.get("name")} for one in inner]
        else:
            found.append({**tool, **tool.get("function", {})})
    return [tool for tool in found if tool.get("name")]


def results_in(body: dict[str, Any]) -> list[Any]:
    found: list[Any] = [
        item for item in _items(body.get("input")) if item.get("type") == "function_call_output"
    ]
    found += [item for item in _items(body.get("messages")) if item.get("role") == "tool"]
    for message in _items(body.get("messages")):
        found += [
            part for part in _items(message.get("content")) if part.get("type") == "tool_result"
        ]
    for content in _items(body.get("contents")):
        found += [part for part in _items(content.get("parts")) if "functionResponse" in part]
    return found


def _items(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _messages(tool: dict[str, Any] | None, arguments: dict[str, Any]) -> Events:
    message = _message(tool, arguments)
    (block,) = message["content"]
    yield "message_start", {"message": {**message, "content": [], "stop_reason": None}}
    if tool:
        yield "content_block_start", {"index": 0, "content_block": {**block, "input": {}}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
    else:
        yield "content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}
        delta = {"type": "text_delta", "text": DONE}
    yield "content_block_delta", {"index": 0, "delta": delta}
    yield "content_block_stop", {"index": 0}
    stop = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield "message_delta", {"delta": stop, "usage": {"output_tokens": 5}}
    yield "message_stop", {}


def _message(tool: dict[str, Any] | None, arguments: dict[str, Any]) -> dict[str, Any]:
    text = {"type": "text", "text": DONE}
    block = (
        {"type": "tool_use", "id": "toolu_1", "name": tool["name"], "input": arguments}
        if tool
        else text
    )
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": [block],
        "stop_reason": "tool_use" if tool else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }


def _responses(tool: dict[str, Any] | None, arguments: dict[str, Any]) -> Events:
    response = {
        "id": "resp_1",
        "object": "response",
        "model": MODEL,
        "status": "in_progress",
        "output": [],
    }
    item: dict[str, Any] = {
        "type": "message",
        "id": "item_1",
        "role": "assistant",
        "content": [{"type": "output_text", "text": DONE, "annotations": []}],
    }
    if tool:
        space = {"namespace": tool["namespace"]} if tool.get("namespace") else {}
        call = {"call_id": "call_1", "name": tool["name"], "arguments": json.dumps(arguments)}
        item = {"type": "function_call", "id": "item_1", **call, **space}
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    yield "response.created", {"response": response}
    yield "response.output_item.added", {"output_index": 0, "item": item}
    yield "response.output_item.done", {"output_index": 0, "item": item}
    yield (
        "response.completed",
        {"response": {**response, "status": "completed", "output": [item], "usage": usage}},
    )


def _chat(tool: dict[str, Any] | None, arguments: dict[str, Any], stream: bool) -> tuple[str, str]:
    message: dict[str, Any] = {"role": "assistant", "content": DONE}
    if tool:
        function = {"name": tool["name"], "arguments": json.dumps(arguments)}
        message = {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}],
        }
    reason = "tool_calls" if tool else "stop"
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    about = {"id": "chat_1", "created": 1, "model": MODEL, "usage": usage}
    if not stream:
        choice = {"index": 0, "message": message, "finish_reason": reason}
        return "application/json", json.dumps(
            {**about, "object": "chat.completion", "choices": [choice]}
        )
    chunks = [
        {"index": 0, "delta": message, "finish_reason": None},
        {"index": 0, "delta": {}, "finish_reason": reason},
    ]
    rows = [
        json.dumps({**about, "object": "chat.completion.chunk", "choices": [chunk]})
        for chunk in chunks
    ]
    return "text/event-stream", "".join(f"data: {row}\n\n" for row in (*rows, "[DONE]"))


def _gemini(
    tool: dict[str, Any] | None, arguments: dict[str, Any], stream: bool
) -> tuple[str, str]:
    part = {"functionCall": {"name": tool["name"], "args": arguments}} if tool else {"text": DONE}
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    answer = json.dumps({"candidates": [candidate], "usageMetadata": usage, "modelVersion": MODEL})
    return ("text/event-stream", f"data: {answer}\n\n") if stream else ("application/json", answer)


def _typed(events: Events) -> str:
    return "".join(
        f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n" for kind, data in events
    )


def _send(handler: BaseHTTPRequestHandler, kind: str, body: str) -> None:
    data = body.encode()
    handler.send_response(200)
    handler.send_header("Content-Type", kind)
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)
