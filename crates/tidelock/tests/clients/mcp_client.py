"""A client made with the official Python SDK. It does the steps that it reads from standard input, and says what came of them.

An order is one JSON object: `server` (a command, or a URL with a token), `mode` (which lifecycle), `name`, and `steps`. A
text that is `$plan` or `$job` stands for the last plan or job that an answer named.
"""

import json
import os
import pathlib
import sys

import anyio
import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import Implementation

# What a busy machine may take for a step. Each takes milliseconds, but for the first start of a language server.
PATIENCE_SECONDS = 60


def transport(server):
    if "url" in server:
        headers = {"Authorization": f"Bearer {server['token']}"}
        http = httpx2.AsyncClient(headers=headers, timeout=PATIENCE_SECONDS)
        return streamable_http_client(server["url"], http_client=http)
    return StdioServerParameters(
        command=server["command"], args=server["args"], env=server["env"], cwd=server["cwd"]
    )


async def until_there(path):
    with anyio.fail_after(PATIENCE_SECONDS):
        while not pathlib.Path(path).exists():
            await anyio.sleep(0.02)


class Doing:
    def __init__(self, client):
        self.client = client
        self.known = {}

    def filled(self, arguments):
        return {
            name: self.known[value[1:]] if isinstance(value, str) and value.startswith("$") else value
            for name, value in arguments.items()
        }

    async def call(self, tool, arguments):
        answer = await self.client.call_tool(tool, self.filled(arguments))
        value = answer.structured_content
        if isinstance(value, dict):
            self.known.update({name: value[name] for name in ("plan", "job") if name in value})
        text = "".join(part.text for part in answer.content if part.type == "text")
        return {"tool": tool, "error": bool(answer.is_error), "text": text, "value": value}

    async def interrupted(self, tool, arguments, when, then):
        """Calls, waits until the file is there, and then stops waiting in one way or the other."""
        async with anyio.create_task_group() as group:
            group.start_soon(self.call, tool, arguments)
            await until_there(when)
            if then == "leave":
                os._exit(0)
            group.cancel_scope.cancel()
        return {"tool": tool, "cancelled": True}

    async def step(self, step):
        match step:
            case {"tools": _}:
                found = (await self.client.list_tools()).tools
                return {"tools": sorted(tool.name for tool in found)}
            case {"resources": _}:
                found = (await self.client.list_resources()).resources
                templates = (await self.client.list_resource_templates()).resource_templates
                texts = {}
                for resource in found:
                    read = await self.client.read_resource(str(resource.uri))
                    texts[str(resource.uri)] = "".join(part.text for part in read.contents)
                return {"resources": texts, "templates": [template.uri_template for template in templates]}
            case {"call": tool, "with": arguments}:
                return await self.call(tool, arguments)
            case {"cancel": tool, "with": arguments, "when": when}:
                return await self.interrupted(tool, arguments, when, "cancel")
            case {"leave": tool, "with": arguments, "when": when}:
                return await self.interrupted(tool, arguments, when, "leave")
            case {"touch": path}:
                pathlib.Path(path).touch()
                return {}
            case {"wait": path}:
                await until_there(path)
                return {}
        raise ValueError(step)


async def main():
    order = json.load(sys.stdin)
    client = Client(
        transport(order["server"]),
        mode=order["mode"],
        client_info=Implementation(name=order["name"], version="1"),
        read_timeout_seconds=PATIENCE_SECONDS,
    )
    async with client:
        doing = Doing(client)
        results = [await doing.step(step) for step in order["steps"]]
        said = {"protocol": client.protocol_version, "results": results}
    print(json.dumps(said))


anyio.run(main)
