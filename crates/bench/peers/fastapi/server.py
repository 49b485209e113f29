"""A stream of tokens as people write it by hand: FastAPI, sse-starlette, and a ring of events in memory.

POST /turns {"events": N} begins a turn when its readers are there; GET /turns/ID/events follows it. A reader gets what is
in the ring, then what comes, and an event `end`.
"""

import asyncio
import collections
import itertools
import json
import sys

import uvicorn
from fastapi import FastAPI, Request
from sse_starlette.sse import EventSourceResponse

app = FastAPI()
turns = {}
ids = itertools.count(1)


class Turn:
    def __init__(self, events, readers):
        self.events = events
        self.waits_for = readers
        self.ring = collections.deque(maxlen=events + 1)
        self.changed = asyncio.Condition()
        self.over = False

    async def run(self):
        async with self.changed:
            await self.changed.wait_for(lambda: self.waits_for <= 0)
        for number in range(1, self.events + 1):
            data = {"sequence": number, "data": {"kind": "text", "item": 0, "delta": "word "}}
            async with self.changed:
                self.ring.append((number, json.dumps(data)))
                self.changed.notify_all()
            await asyncio.sleep(0)
        async with self.changed:
            self.over = True
            self.changed.notify_all()

    async def follow(self, after):
        async with self.changed:
            self.waits_for -= 1
            self.changed.notify_all()
        while True:
            while after < len(self.ring):
                number, data = self.ring[after]
                after += 1
                yield {"id": str(number), "event": "text", "data": data}
            async with self.changed:
                if after >= len(self.ring):
                    if self.over:
                        break
                    await self.changed.wait()
        yield {"event": "end", "data": "{}"}


@app.get("/healthz")
async def healthz():
    return {"ok": True}


@app.post("/turns")
async def start(request: Request):
    wanted = await request.json()
    turn_id = next(ids)
    turns[turn_id] = Turn(wanted["events"], wanted["readers"])
    turns[turn_id].task = asyncio.create_task(turns[turn_id].run())
    return {"id": turn_id}


@app.get("/turns/{turn_id}/events")
async def events(turn_id: int, request: Request):
    after = int(request.headers.get("last-event-id", 0))
    return EventSourceResponse(turns[turn_id].follow(after))


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error", backlog=2048)
