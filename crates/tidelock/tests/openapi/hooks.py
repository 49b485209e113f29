"""What schemathesis has to know about a daemon: real ids, and what it must leave alone.

Made-up ids find nothing, so most requests get the id of something that is there; the others keep what was made up.
What is used up (a session that is deleted, a plan that is discarded) is made anew for each request. Values that would
run a made-up command, write to a made-up file or wait for a long time are replaced always: they test the machine and
not the interface.
"""

import base64
import collections
import json
import os
import urllib.request

import schemathesis

ADDRESS = os.environ["TIDELOCK_TEST_ADDRESS"]
TOKEN = os.environ["TIDELOCK_TEST_TOKEN"]
PROJECT = os.environ["TIDELOCK_TEST_PROJECT"]
# A file that has a language server.
FILE = os.environ["TIDELOCK_TEST_FILE"]
BACKUPS = os.environ["TIDELOCK_TEST_BACKUPS"]

# One request in so many keeps the values that were made up.
ONE_IN = 4
# Longer than any request has to wait for something in this test.
LONGEST_WAIT_MS = 50
DAY_MS = 86_400_000


def call(method, path, body=None):
    """Asks the daemon, and returns what it answers."""
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://{ADDRESS}{path}", data, headers, method=method)
    with urllib.request.urlopen(request, timeout=30) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def new_job():
    """A job that is queued for an hour."""
    command = {"argv": ["true"], "directory": PROJECT}
    return call("POST", "/v1/jobs", {"command": command, "delay_ms": 3_600_000})["job"]["id"]


def ended_job(program):
    """A job that has ended."""
    command = {"argv": [program], "directory": PROJECT}
    job = call("POST", "/v1/jobs", {"command": command})["job"]["id"]
    return call("GET", f"/v1/jobs/{job}?wait_ms=20000")["id"]


def running_process():
    """A process of a job that goes on for as long as the daemon."""
    call("POST", "/v1/jobs", {"command": {"argv": ["sleep", "3600"], "directory": PROJECT}})
    for _ in range(1000):
        pids = [process.get("pid") for process in call("GET", "/v1/processes")["processes"]]
        if any(pids):
            return next(filter(None, pids))
    raise AssertionError("the job does not start")


def new_plan():
    """A plan with a change."""
    plan = call("POST", "/v1/plans", {"directory": PROJECT, "title": "made for a test"})["id"]
    write = {"do": "write", "path": "made.txt", "text": "made\n"}
    call("POST", f"/v1/plans/{plan}/changes", {"operations": [write]})
    return plan


def sealed_plan():
    """A plan that is ready to be applied."""
    plan = new_plan()
    call("POST", f"/v1/plans/{plan}/seal", {})
    return plan


def new_session():
    """A session that nobody has spoken in."""
    return call("POST", "/v1/sessions", {"directory": PROJECT})["id"]


def spoken_session(steps, queued):
    """A session with a turn that follows a script, and perhaps one behind it. Returns it with the last turn."""
    script = json.dumps({"steps": steps})
    agent = {"name": "rehearsal", "script": script}
    session = call("POST", "/v1/sessions", {"directory": PROJECT, "agent": agent})["id"]
    turns = f"/v1/sessions/{session}/turns"
    turn = call("POST", turns, {"prompt": "begin"})["turn"]["id"]
    if queued:
        return session, call("POST", turns, {"prompt": "go on"})["turn"]["id"]
    call("GET", f"{turns}/{turn}?wait_ms=20000")
    return session, turn


def new_server():
    """The language server of the file."""
    return call("POST", "/v1/lsp/servers", {"path": FILE})["servers"][0]["id"]


class Stage:
    """What is there before the first request."""

    def __init__(self):
        call("POST", "/v1/breakers/model%2Fapi/record", {"outcome": "failure"})
        call("POST", "/v1/breakers/model%2Fapi/force", {"state": "open"})
        self.job = ended_job("true")
        self.failed_job = ended_job("false")
        self.pid = running_process()
        self.plan = new_plan()
        self.changeset = call("GET", f"/v1/plans/{self.plan}/changesets")["changesets"][0]["id"]
        self.session, self.turn = spoken_session([{"say": "hello"}], queued=False)
        # The first turn waits for an answer that nobody gives, so the second one stays in the queue.
        self.busy, self.queued = spoken_session([{"ask": "may I?"}], queued=True)
        self.workspace = call("GET", "/v1/workspaces")["workspaces"][0]["id"]
        self.server = new_server()


STAGE = Stage()
COUNTS = collections.Counter()


def real_parameters(method, path):
    """The path parameters that lead to something."""
    if path.startswith("/v1/breakers/"):
        return {"name": "model%2Fapi"}
    if path.startswith("/v1/jobs/"):
        if path.endswith("/cancel"):
            return {"id": new_job()}
        return {"id": STAGE.failed_job if path.endswith("/retry") else STAGE.job}
    if path.startswith("/v1/lsp/servers/"):
        return {"id": STAGE.server}
    if path.startswith("/v1/plans/"):
        if path.endswith(("/discard", "/seal", "/refresh", "/check")):
            return {"id": new_plan()}
        if path.endswith("/undo"):
            plan = sealed_plan()
            call("POST", "/v1/plans/apply", {"plans": [plan]})
            return {"id": plan}
        return {"id": STAGE.plan, "changeset": STAGE.changeset}
    if path.startswith("/v1/processes/"):
        return {"pid": STAGE.pid}
    if path.startswith("/v1/sessions/"):
        if method in ("DELETE", "PUT") and "{turn}" in path:
            session, turn = spoken_session([{"ask": "may I?"}], queued=True)
            return {"id": session, "turn": turn}
        if path.endswith("/queue"):
            return {"id": STAGE.busy}
        if method == "DELETE" or path.endswith(("/archive", "/turns", "/cancel")) and method == "POST":
            return {"id": new_session()}
        return {"id": STAGE.session, "turn": STAGE.turn, "permission": "1"}
    if path.startswith("/v1/workspaces/"):
        # A workspace with plans is not forgotten, so it can be named again and again.
        return {"id": STAGE.workspace}
    return {}


def pinned(key, value):
    """What stands in place of a value that must not reach the machine; the value itself if it may."""
    if key in ("directory", "workspace", "path") and isinstance(value, str) and value.startswith("/"):
        return {"directory": PROJECT, "workspace": os.path.dirname(FILE), "path": FILE}[key]
    if key == "argv" and isinstance(value, list) and value:
        return ["true"]
    if key == "shell" and isinstance(value, str) and value:
        return "true"
    if key in ("checks", "add") and isinstance(value, list):
        return ["true" if isinstance(each, str) and each else each for each in value]
    # In a query a number may be written as text.
    if key in ("wait_ms", "timeout_ms", "deadline_ms") and str(value).isdecimal():
        return type(value)(min(int(value), LONGEST_WAIT_MS))
    # Without workers the jobs that are waited for would not end.
    if key == "max_workers" and value == 0:
        return 1
    # What is younger is needed by the requests that follow.
    if key.startswith("older_than") and isinstance(value, int):
        return max(value, DAY_MS)
    return value


def pin(value):
    """The same for everything in a body."""
    if isinstance(value, dict):
        return {key: pinned(key, pin(each)) for key, each in value.items()}
    if isinstance(value, list):
        return [pin(each) for each in value]
    return value


def real_body(path, body):
    """A body whose names lead to something."""
    body = dict(body)
    if path == "/v1/plans/apply" and "plans" in body:
        body = {"plans": [sealed_plan()]}
    if isinstance(body.get("directory"), str):
        body["directory"] = PROJECT
    if path.startswith("/v1/lsp/") and isinstance(body.get("path"), str):
        body["path"] = FILE
        body.pop("workspace", None)
        body.pop("server", None)
    for key in ("plan", "parent"):
        if isinstance(body.get(key), str):
            body[key] = STAGE.plan
    if isinstance(body.get("command"), dict):
        command = {key: value for key, value in body["command"].items() if value is not None}
        command["directory"] = PROJECT
        body["command"] = command
        body["after"] = []
    if isinstance(body.get("agent"), dict):
        body["agent"] = {"name": "rehearsal"}
    return body


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """A language server that cannot do something, stumbles or is late is described as 501 to 504, and no fault of ours."""
    is_of_a_server = case.operation.path.startswith("/v1/lsp/") and 501 <= response.status_code <= 504
    return not (is_of_a_server and type(failure).__name__ == "ServerError")


@schemathesis.hook
def before_call(context, case, kwargs):
    method, path = case.operation.method.upper(), case.operation.path
    COUNTS[(method, path)] += 1
    is_real = COUNTS[(method, path)] % ONE_IN != 0
    if is_real and case.path_parameters:
        real = real_parameters(case.method.upper(), path)
        case.path_parameters.update({key: real[key] for key in case.path_parameters if key in real})
    if isinstance(case.query, dict):
        case.query.update({key: pinned(key, value) for key, value in case.query.items()})
        # A stream has no end that could be waited for; streams have tests of their own.
        if "follow" in case.query:
            case.query["follow"] = "false"
        if is_real and isinstance(case.query.get("path"), str):
            case.query["path"] = "a.txt"
    if isinstance(case.body, (dict, list)):
        if is_real and isinstance(case.body, dict):
            case.body = real_body(path, case.body)
        case.body = pin(case.body)
        if path == "/v1/log/backup" and isinstance(case.body, dict) and isinstance(case.body.get("path"), str):
            name = base64.urlsafe_b64encode(os.urandom(9)).decode()
            case.body["path"] = f"{BACKUPS}/{name}" if is_real else "not/absolute"
