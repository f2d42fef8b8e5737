"""A workflow library that runs several steps in one call: it sends each result as a checkpoint,
and starts the next step once the result is saved.

Written from the contract of checkpoints alone (contract K), with only Python's standard library.
"""

import base64
import hashlib
import hmac
import json
import time
import traceback
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# Delays before the retries of a checkpoint that got no response, or a 503.
RETRY_DELAYS_S = (0.05, 0.2, 0.8)
CLOCK_TOLERANCE_S = 5
# These headers tell the server that a workflow library responds (contract K 2.5).
LIBRARY = {"Upstash-Workflow-Sdk-Version": "1", "Upstash-workflow-sdk": "python-example"}


class NonRetryable(Exception):
    """Raised by a workflow: the run fails at once."""


class Stop(BaseException):
    """Ends the call before the workflow's function has returned. `except Exception` in a workflow does not
    catch a `Stop`, since its base class is BaseException."""

    def __init__(self, status, text, headers=()):
        self.status, self.text, self.headers = status, text, dict(headers)


class CodeChanged(Stop):
    """The code does not reach the steps in the journal. The run is parked until matching code is deployed (contract K 7)."""

    def __init__(self, has, does):
        message = f"This run has {has}, and the code {does} now."
        text = json.dumps({"error": "CodeChanged", "message": message})
        super().__init__(409, text, {"Upstash-Workflow-Code-Changed": "true"})


class Workflow:
    """A function of a `Context`, served at a URL. When a run has failed, `failed` is called with the run's id
    and with the response of the run's last attempt."""

    def __init__(self, function, server_url, signing_keys, failed=None):
        self._function, self._server_url, self._failed = function, server_url.rstrip("/"), failed
        self._signing_keys = signing_keys

    def respond(self, headers, body):
        """Returns the response to a request as status, headers and body.
        `headers` and `body` are the request's headers and bytes."""
        # Both prefixes have the same meaning (contract W 1).
        headers = {name.lower().replace("waypost-", "upstash-", 1): value for name, value in headers.items()}
        if not is_signed(headers.get("upstash-signature", ""), body, self._signing_keys):
            return 403, LIBRARY, b"the signature does not match"
        try:
            if "upstash-workflow-failure-callback" in headers:
                return self._report_failure(headers, json.loads(body))
            return self._continue(headers, body)
        except Stop as stop:
            return stop.status, {**LIBRARY, **stop.headers}, stop.text.encode()
        except NonRetryable as error:
            return 489, {**LIBRARY, "Upstash-NonRetryable-Error": "true"}, described(error)
        except Exception as error:
            return 500, LIBRARY, described(error)

    def _continue(self, headers, body):
        token = headers.get("upstash-workflow-checkpoint")
        if token is None or headers["upstash-workflow-calltype"] != "step":
            raise Stop(501, "only triggered runs are served, with steps that this library supports")
        call = Call(self._server_url, token)
        run_id = headers["upstash-workflow-runid"]
        entries = json.loads(body) if body else call.journal(run_id, headers["upstash-message-id"])
        context = Context(run_id, entries, call)
        try:
            result = self._function(context)
        except Exception:
            context.save_last()
            raise
        context.check_end()
        last_step = context.last_step(int(headers.get("upstash-workflow-end-step", 0)))
        end = {"Upstash-Workflow-End": context.owned[0]}
        if last_step:
            end["Upstash-Workflow-End-Step"] = str(len(last_step))
        return 200, {**LIBRARY, **end}, last_step + (b"" if result is None else json.dumps(result).encode())

    def _report_failure(self, headers, failure):
        if self._failed is None:
            return 200, {**LIBRARY, "Upstash-Workflow-Failure-Callback-Notfound": "true"}, b""
        self._failed(headers["upstash-workflow-runid"], decoded(failure["body"]))
        return 200, LIBRARY, b""


def server_of(workflows, port):
    """Returns a server on 127.0.0.1 that serves `workflows` by path. Each call has its own thread."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, headers, text = workflows[self.path].respond(self.headers, body)
            try:
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(text))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text)
            except ConnectionError:
                pass  # the server has ended this call

        def log_message(self, *_):
            pass

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


class Context:
    """The argument of a workflow's function. Steps are identified by their order, so the function must reach the same steps each time."""

    def __init__(self, run_id, entries, call):
        payload = decoded(entries[0]["body"])
        self.run_id, self.payload, self._call = run_id, json.loads(payload) if payload else None, call
        self._results, self._plans, self._last, self._count = {}, {}, None, 0
        # Tokens of the messages that the call owns. The next checkpoint finishes these messages.
        self.owned = [call.token]
        self._unsaved = None
        for entry in entries[1:]:
            if entry["callType"] != "step":
                continue
            self._last = step = json.loads(decoded(entry["body"]))
            known, step_id = (self._plans, step["targetStep"]) if is_plan(step) else (self._results, step["stepId"])
            if step_id in known and entry is entries[-1]:
                raise Stop(200, "the delivery repeats an earlier entry")
            known.setdefault(step_id, step)

    def run(self, name, function, is_last=False):
        """Returns the saved result of `function`, which must be a JSON value.
        With `is_last`, the workflow must return right after this step, so that the result can be sent
        with the end of the run (contract K 5.7)."""
        step_id = self._next_id()
        step = self._known(step_id, name, "Run", 1)
        if step is None:
            step = executed(function, result(step_id, name, "Run", 1))
            if is_last:
                self._unsaved = step
            else:
                self._save(step)
        return value_of(step)

    def sleep(self, name, seconds):
        step_id = self._next_id()
        if self._known(step_id, name, "SleepFor", 1) is None:
            self._save({**result(step_id, name, "SleepFor", 1), "sleepFor": seconds}, delay=f"{seconds}s")

    def wait_for_event(self, name, event_id, timeout="7d"):
        """Returns the data of the notification as text, or `None` if the event was not notified in time."""
        step_id = self._next_id()
        known = self._known(step_id, name, "Wait", 1)
        if known is None:
            wait = {"eventId": event_id, "timeout": timeout, "step": result(step_id, name, "Wait", 1)}
            self._call.checkpoint(self.owned, [{"wait": wait}])
            raise Stop(200, "waiting for an event")
        return None if known["waitTimeout"] else decoded(known.get("out", ""))

    def run_together(self, *steps):
        """Runs several steps, each a name and a function, at the same time, and returns their results."""
        size = len(steps)
        if size < 2:
            return [self.run(*step) for step in steps]
        first = self._next_id(size)
        ids = range(first, first + size)
        known = [self._known(step_id, name, "Run", size) for step_id, (name, _) in zip(ids, steps)]
        if all(known):
            return [value_of(step) for step in known]
        if not any(known) and first not in self._plans:
            return self._plan_together(ids, steps)
        target = self._last["targetStep"] if is_plan(self._last) else None
        if target in ids:  # the delivery of a plan executes only that step
            name, function = steps[target - first]
            self._call.checkpoint(self.owned, [{"step": executed(function, result(target, name, "Run", size))}])
        raise Stop(200, "the delivery of the group's last result continues the run")

    def _plan_together(self, ids, steps):
        size = len(steps)
        plans = [{**result(0, name, "Run", size), "targetStep": step_id} for step_id, (name, _) in zip(ids, steps)]
        planned = [entry.get("token") for entry in self._call.checkpoint(self.owned, [{"step": plan} for plan in plans])]
        self.owned, values = [], []

        def execute(token, step_id, name, function):
            step = executed(function, result(step_id, name, "Run", size))
            [entry] = self._call.checkpoint([token], [{"step": step}])
            if "token" in entry:
                self.owned.append(entry["token"])
            return value_of(step)

        with ThreadPoolExecutor(size) as threads:  # exits when all threads have finished
            work = [(token, step_id, *step) for token, step_id, step in zip(planned, ids, steps) if token]
            running = [threads.submit(execute, *each) for each in work]
        errors = [error for error in (each.exception() for each in running) if error]
        if errors:
            stops = [error for error in errors if isinstance(error, Stop)]
            if not stops and self.owned:
                self._call.checkpoint(self.owned, [])  # the saved results need no delivery
            raise (stops or errors)[0]
        if len(self.owned) < size:
            raise Stop(200, "the delivery of the group's last result continues the run")
        return [each.result() for each in running]

    def _next_id(self, size=1):
        self.save_last()
        first = self._count + 1
        self._count += size
        return first

    def _known(self, step_id, name, kind, size):
        check_same(self._results.get(step_id) or self._plans.get(step_id), step_id, (name, kind, size))
        return self._results.get(step_id)

    def last_step(self, bytes_max):
        """Returns the last step, to be sent with the end of the run.
        If the step exceeds `bytes_max`, saves the step and returns no bytes."""
        step = b"" if self._unsaved is None else json.dumps(self._unsaved).encode()
        if len(step) <= bytes_max:
            return step
        self.save_last()
        return b""

    def save_last(self):
        """Saves a result that was to be sent with the end of the run."""
        step, self._unsaved = self._unsaved, None
        if step is not None:
            self._save(step)

    def check_end(self):
        """Raises `CodeChanged` if the function has returned before it reached all steps in the journal."""
        for step_id in sorted({*self._results, *self._plans}):
            if step_id > self._count:
                step = self._results.get(step_id) or self._plans[step_id]
                raise CodeChanged(f"step {step_id} '{step['stepName']}'", f"returns after step {self._count}")

    def _save(self, step, **when):
        [entry] = self._call.checkpoint(self.owned, [{"step": step, **when}])
        if "token" not in entry:
            raise Stop(200, "the step is delivered later, when it is due")
        self.owned = [entry["token"]]


class Call:
    """The requests to the server that belong to one call, identified by its token."""

    def __init__(self, server_url, token):
        self._server_url, self.token = server_url, token

    def checkpoint(self, done, append):
        """Saves `append`, finishes the messages `done`, and returns the saved entries."""
        body = json.dumps({"done": done, "append": append}).encode()
        status, text = self._send("POST", "/v2/waypost/checkpoints", done[0], body)
        if status == 200:
            return json.loads(text)["entries"]
        reason = json.loads(text).get("reason") if status == 409 else None
        if reason == "ended":
            raise Stop(200, "the run has ended")
        if status == 412:  # a limit is reached, so a retry would fail as well
            raise NonRetryable(text)
        # This call may no longer be valid, or the result may not be saved. A failure status ends the call on the server.
        raise Stop(500, f"a checkpoint failed with status {status}: {text}")

    def journal(self, run_id, message_id):
        """Reads the journal up to the message. The server does not deliver a journal that is too large."""
        status, text = self._send("GET", f"/v2/workflows/runs/{run_id}", self.token)
        if status == 404:
            raise Stop(200, "the run has ended")
        if status != 200:
            raise Stop(500, f"reading the journal failed with status {status}: {text}")
        entries = json.loads(text)
        return entries[: [entry["messageId"] for entry in entries].index(message_id) + 1]

    def _send(self, method, path, token, body=None):
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        request = urllib.request.Request(self._server_url + path, body, headers, method=method)
        for delay_s in (*RETRY_DELAYS_S, None):
            try:
                with urllib.request.urlopen(request, timeout=60) as response:
                    return response.status, response.read().decode()
            except urllib.error.HTTPError as error:
                if error.code != 503 or delay_s is None:
                    return error.code, error.read().decode()
            except OSError as error:
                if delay_s is None:
                    raise Stop(500, f"the server cannot be reached: {error}")
            time.sleep(delay_s)


def executed(function, step):
    return {**step, "out": json.dumps(function())}


def result(step_id, name, kind, size):
    return {"stepId": step_id, "stepName": name, "stepType": kind, "concurrent": size}


def value_of(step):
    """Reads a new result as if from the journal, so that the first call and all later calls see the same value."""
    return json.loads(step["out"]) if "out" in step else None


def is_plan(step):
    return step is not None and step["stepId"] == 0


def check_same(step, step_id, is_now):
    was = is_now if step is None else (step["stepName"], step["stepType"], step["concurrent"])
    if was != is_now:
        raise CodeChanged(f"step {step_id} {described_step(*was)}", f"has {described_step(*is_now)} there")


def described_step(name, kind, size):
    return f"'{name}' ({kind})" + (f" as one of {size} at once" if size > 1 else "")


def is_signed(signature, body, keys):
    """Whether `signature` is a valid JWT over `body`, made with one of the keys (contract W 9.1)."""
    try:
        signed, _, mac = signature.rpartition(".")
        macs = [hmac.new(key.encode(), signed.encode(), hashlib.sha256).digest() for key in keys]
        if not any(hmac.compare_digest(from_base64url(mac), each) for each in macs):
            return False
        claims = json.loads(from_base64url(signed.split(".")[1]))
        is_in_time = claims["nbf"] - CLOCK_TOLERANCE_S <= time.time() <= claims["exp"] + CLOCK_TOLERANCE_S
        return is_in_time and from_base64url(claims["body"]) == hashlib.sha256(body).digest()
    except (ValueError, LookupError):
        return False


def from_base64url(text):
    return base64.urlsafe_b64decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4))


def decoded(text):
    return base64.b64decode(text).decode()


def described(error):
    members = {"error": type(error).__name__, "message": str(error), "stack": traceback.format_exc()}
    return json.dumps(members).encode()
