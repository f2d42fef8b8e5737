"""Workflows with the library of examples/python-workflow, for its test."""

import json
import os
import sys
import urllib.parse
import urllib.request

sys.path.append(os.path.join(os.path.dirname(__file__), "../../examples/python-workflow"))
from waypost_workflow import NonRetryable, Workflow, server_of


def tell(what):
    """Tells the test, which may take its time to answer."""
    with urllib.request.urlopen(f"{os.environ['TEST_URL']}/?{urllib.parse.quote(what)}") as answer:
        answer.read()


def travels(context):
    """Has a twin in the test, with the other library."""
    first = context.run("first", lambda: "first by Python")
    together = context.run_together(*[(step, lambda step=step: f"{step} by Python") for step in ("left", "middle", "right")])
    context.sleep("nap", 0.1)
    news = context.wait_for_event("news", context.payload["event"], "1m")
    return [first, *together, news, context.run("last", lambda: "last by Python", is_last=True)]


def tells(context):
    for step in ("one", "two", "three"):
        context.run(step, lambda: tell(step))
    return "told"


times = {}


def stumbles(context):
    """Its second branch fails the first time."""

    def branch(name):
        times[name] = times.get(name, 0) + 1
        if times[name] == 1 and name == "stumbling":
            raise ValueError("a first time")
        return times[name]

    return context.run_together(*[(name, lambda name=name: branch(name)) for name in ("steady", "stumbling")])


def refuses(context):
    context.run("before", lambda: 1, is_last=True)
    raise NonRetryable("never")


def expires(context):
    return context.wait_for_event("wait", "never", "1s")


deployed = ["one", "other", "gone", "one"]


def changes(context):
    """Each call finds other code."""
    name = deployed.pop(0)
    if name == "gone":
        return "too early"
    context.run(name, lambda: 1)
    return context.wait_for_event("news", "go-on", "1m")


def told(run_id, answer):
    error = json.loads(answer)
    tell(f"{run_id} has failed: {error['error']} {error['message']}")


keys = [os.environ["QSTASH_CURRENT_SIGNING_KEY"], os.environ["QSTASH_NEXT_SIGNING_KEY"]]
workflows = {
    f"/{function.__name__}": Workflow(function, os.environ["QSTASH_URL"], keys, told)
    for function in (travels, tells, stumbles, refuses, expires, changes)
}
server = server_of(workflows, int(os.environ["PORT"]))
print("ready", flush=True)
server.serve_forever()
