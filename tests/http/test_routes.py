"""Every route, through a real daemon."""

from __future__ import annotations

import base64
import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest

import holdfast
from holdfast.http.routes.health import has_space
from tests.http.asking import Api
from tests.support import eventually
from tests.upgrade.test_in_place import start_daemon

PROCESSES = "/api/v1/processes"


def test_from_start_to_removal(api: Api) -> None:
    started = api.ask("POST", PROCESSES, {"argv": ["sh", "-c", "echo hi; exit 3"], "session": "s1"})
    assert started.status == 201
    path = started.headers["location"]
    assert path == f"{PROCESSES}/{started.value['id']}"
    waited = api.ask("GET", f"{path}/wait?timeout=5").value
    assert (waited["done"], waited["timed_out"], waited["process"]["exit_code"]) == (True, False, 3)
    assert api.ask("GET", path).value["reason"] == "exited"
    assert api.ask("GET", f"{path}/log").value["text"] == "hi\n"
    assert api.ask("DELETE", path).status == 204
    assert api.ask("GET", path).code == "not_found"
    assert api.ask("DELETE", path).status == 404


def test_the_beginning_of_a_name_is_taken_as_an_id(api: Api) -> None:
    started = api.ask("POST", PROCESSES, {"command": "sleep 60", "name": "named-over-http"}).value
    assert api.ask("GET", f"{PROCESSES}/named-over").value["id"] == started["id"]


def test_ended_processes_are_listed_with_all_which_takes_true_or_false(api: Api) -> None:
    ended = api.start("true", session="listed")["id"]
    api.ask("GET", f"{PROCESSES}/{ended}/wait?timeout=5")
    listed = {query: api.ask("GET", f"{PROCESSES}?session=listed{query}") for query in ("", "&all=true", "&all=false")}
    ids = {query: [one["id"] for one in answer.value["processes"]] for query, answer in listed.items()}
    assert ids[""] == ids["&all=false"] == [] and ended in ids["&all=true"]
    bare = api.ask("GET", f"{PROCESSES}?all")
    assert bare.code == "bad_value" and "true or false" in bare.value["detail"]


def test_the_same_errors_with_the_same_codes(api: Api) -> None:
    running = f"{PROCESSES}/{api.start('sleep 60')['id']}"
    assert api.ask("DELETE", running).code == "not_now"
    assert api.ask("POST", f"{running}/resize", {"cols": 80, "rows": 24}).code == "no_terminal"
    assert api.ask("POST", f"{running}/stdin", {"text": "x"}).code == "stdin_closed"
    missing = api.ask("POST", PROCESSES, {"argv": ["/no/such/program"]})
    assert (missing.status, missing.code) == (422, "command_not_found")
    assert api.ask("POST", PROCESSES, {"command": "true", "cwd": "/no/where"}).status == 422
    refused = api.ask("POST", PROCESSES, {"command": "true", "colour": "blue"})
    assert (refused.status, refused.code) == (400, "bad_value")
    assert "colour" in refused.value["detail"]
    assert api.ask("GET", f"{running}/log?lines=x").code == "bad_value"
    assert api.ask("GET", f"{running}/log?from=1&lines=2").code == "bad_value"
    assert api.ask("GET", f"{PROCESSES}?limit=0").code == "bad_value"
    assert api.ask("GET", f"{PROCESSES}?colour=blue").code == "bad_value"
    assert api.ask("GET", f"{PROCESSES}?all=true&all=true").code == "bad_value"
    assert api.ask("POST", f"{running}/kill", {"signal": "NOPE"}).code == "bad_value"


def test_refusals_of_http_itself(api: Api) -> None:
    assert (api.ask("GET", "/nowhere").status, api.ask("GET", "/api/v1/processes/x/y/z").status) == (404, 404)
    wrong = api.ask("PUT", PROCESSES)
    assert (wrong.status, wrong.headers["allow"]) == (405, "GET, HEAD, OPTIONS, POST")
    assert wrong.code == "unsupported"
    options = api.ask("OPTIONS", PROCESSES)
    assert (options.status, options.headers["allow"]) == (204, "GET, HEAD, OPTIONS, POST")
    assert "access-control-allow-origin" not in options.headers
    head = api.ask("HEAD", PROCESSES)
    assert (head.status, head.body) == (200, b"")
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert api.ask("POST", PROCESSES, b"command=true", form).status == 415
    assert api.ask("POST", PROCESSES, b"{", {"Content-Type": "application/json"}).code == "bad_value"
    assert api.ask("POST", PROCESSES, b"[1]", {"Content-Type": "application/json"}).code == "bad_value"
    deep = b"[" * 100_000
    assert api.ask("POST", PROCESSES, deep, {"Content-Type": "application/json"}).code == "bad_value"
    assert api.ask("GET", PROCESSES, headers={"Accept": "image/png"}).status == 406
    assert api.ask("GET", f"{PROCESSES}/x/attach").status == 426
    announced = {"Content-Type": "application/json", "Content-Length": str(1 << 30)}
    assert api.ask("POST", PROCESSES, headers=announced).status == 413


def test_pages_of_processes(api: Api) -> None:
    mine = [api.start("true", session="paged")["id"] for _ in range(5)]
    found: list[str] = []
    query = f"{PROCESSES}?all=true&session=paged&limit=2"
    page = api.ask("GET", query).value
    while True:
        found += [process["id"] for process in page["processes"]]
        if page["next"] is None:
            break
        forgotten = f"{PROCESSES}/{found[-1]}"
        api.ask("GET", f"{forgotten}/wait")
        assert api.ask("DELETE", forgotten).status in (204, 409)
        page = api.ask("GET", f"{query}&after={page['next']}").value
    assert found == mine
    assert api.ask("GET", f"{PROCESSES}?after=nonsense").code == "bad_value"
    assert api.ask("GET", f"{PROCESSES}?after=nan_proc_000000000000").code == "bad_value"
    for left in mine:
        api.ask("DELETE", f"{PROCESSES}/{left}")


def test_output_by_time(api: Api) -> None:
    path = f"{PROCESSES}/{api.start('echo one; sleep 0.3; echo two')['id']}"
    api.ask("GET", f"{path}/wait?timeout=5")
    reply = api.ask("GET", f"{path}/log/times").value
    assert reply["known"] is True
    at = {entry["offset"]: entry["time"] for entry in reply["times"]}
    assert at[4] - at[0] > 0.2
    assert api.ask("GET", f"{path}/log?from_time={at[4] - 0.05}").value["text"] == "two\n"
    assert api.ask("GET", f"{path}/log?to_time={at[4] - 0.05}").value["text"] == "one\n"
    assert [one["text"] for one in api.ask("GET", f"{path}/search?pattern=o&from_time={at[4]}").value["matches"]] == [
        "two"
    ]
    assert api.ask("GET", f"{path}/log?from_time=x").code == "bad_value"
    assert api.ask("GET", f"{path}/log?to_time=-1").code == "bad_value"
    assert api.ask("GET", f"{path}/log?line=1&to_time=1").code == "bad_value"


def test_a_log_in_every_form(api: Api) -> None:
    process = api.start(r"printf '\033[1mone\033[0m\ntwo\nthree'")
    path = f"{PROCESSES}/{process['id']}"
    api.ask("GET", f"{path}/wait")
    raw = b"\x1b[1mone\x1b[0m\ntwo\nthree"
    page = api.ask("GET", f"{path}/log?from=4&view=raw").value
    assert base64.b64decode(page["data"]) == raw[4:]
    assert (page["start"], page["next_offset"], page["total"], page["status"]) == (4, len(raw), len(raw), "ended")
    octets = api.ask("GET", f"{path}/log?bytes=5&from=0", headers={"Accept": "application/octet-stream"})
    assert octets.body == raw[:5]
    assert (octets.headers["holdfast-next"], octets.headers["holdfast-total"]) == ("5", str(len(raw)))
    text = api.ask("GET", f"{path}/log?lines=2", headers={"Accept": "text/plain"})
    assert text.body == b"two\nthree"
    best = {"Accept": "application/octet-stream;q=0.1, text/plain;q=0.5"}
    assert api.ask("GET", f"{path}/log", headers=best).body == b"one\ntwo\nthree"
    assert api.ask("GET", f"{path}/log?stream=err").code == "bad_value"
    assert api.ask("GET", f"{path}/log?follow=true").code == "bad_value"
    assert api.ask("GET", f"{path}/log?bytes={1 << 40}").code == "bad_value"


def test_a_long_poll_returns_with_the_output(api: Api) -> None:
    process = api.start("read line; echo $line; sleep 60", stdin=True)
    path = f"{PROCESSES}/{process['id']}"
    quick = api.ask("GET", f"{path}/log?from=0&wait=0.05").value
    assert (quick["text"], quick["next_offset"], quick["closed"]) == ("", 0, False)
    teller = threading.Timer(0.2, lambda: api.ask("POST", f"{path}/stdin", {"text": "now", "enter": True}))
    teller.start()
    began = time.monotonic()
    assert api.ask("GET", f"{path}/log?from=0&wait=30").value["text"] == "now\n"
    assert time.monotonic() - began < 25
    assert api.ask("GET", f"{path}/log?wait=1").code == "bad_value"
    teller.join()


def test_input_as_bytes_and_as_json(api: Api) -> None:
    path = f"{PROCESSES}/{api.start('cat', stdin=True)['id']}"
    octets = {"Content-Type": "application/octet-stream"}
    first = api.ask("POST", f"{path}/stdin", b"\x00\xff", octets).value
    assert (first["written"], first["accepted"], first["status"]) == (2, 2, "sent")
    again = api.ask("POST", f"{path}/stdin?at=0", b"\x00\xff!", octets).value
    assert again["accepted"] == 3
    api.ask("POST", f"{path}/stdin", {"data": base64.b64encode(b"x").decode(), "enter": True, "eof": True})
    assert api.ask("GET", f"{path}/wait").value["process"]["exit_code"] == 0
    log = api.ask("GET", f"{path}/log", headers={"Accept": "application/octet-stream"})
    assert log.body == b"\x00\xff!x\n"
    assert api.ask("POST", f"{path}/stdin", {"text": "x"}).value["status"] == "already_exited"
    assert api.ask("POST", f"{path}/stdin", {"text": "x", "data": ""}).code == "bad_value"
    assert api.ask("POST", f"{path}/stdin?enter=true", {"text": "x"}).code == "bad_value"


def test_kill_resize_and_sessions(api: Api) -> None:
    process = api.start("exec sleep 60", pty=True, session="of/all sorts", lifetime="session")
    path = f"{PROCESSES}/{process['id']}"
    assert api.ask("POST", f"{path}/resize", {"cols": 90, "rows": 20}).status == 204
    assert api.ask("GET", path).value["cols"] == 90
    assert api.ask("POST", f"{path}/kill", {"signal": "WINCH"}).value["sent"] == 1
    sessions = {one["session"]: one for one in api.ask("GET", "/api/v1/sessions").value["sessions"]}
    assert sessions["of/all sorts"]["running"] == 1
    ended = api.ask("POST", "/api/v1/sessions/of%2Fall%20sorts/end").value
    assert [result["id"] for result in ended["results"]] == [process["id"]]
    other = api.start("exec sleep 60")
    killed = api.ask("POST", f"{PROCESSES}/{other['id']}/kill").value
    assert (killed["status"], killed["forced"]) == ("ended", False)
    by_name = api.ask("POST", "/api/v1/kill", {"session": "unknown"}).value
    assert by_name == {"results": []}
    assert set(api.ask("POST", "/api/v1/remove", {"processes": [other["id"]]}).value["removed"]) == {other["id"]}


def test_waiting_for_several(api: Api) -> None:
    slow, quick = api.start("sleep 60")["id"], api.start("exit 2")["id"]
    waited = api.ask("POST", "/api/v1/wait", {"processes": [slow, quick], "mode": "any", "timeout": 5}).value
    assert waited["done"] == [quick]
    posted = api.ask("POST", f"{PROCESSES}/{slow}/wait", {"timeout": 0.01}).value
    assert (posted["done"], posted["timed_out"]) == (False, True)
    assert api.ask("GET", f"{PROCESSES}/{slow}/wait?timeout=0.01").value["process"]["status"] == "running"


def test_the_session_of_the_caller_is_kept(api: Api) -> None:
    process = api.start("exec sleep 60")
    api.ask("POST", f"{PROCESSES}/{process['id']}/kill", headers={"Holdfast-Session": "chat-42"})
    assert api.ask("GET", f"{PROCESSES}/{process['id']}").value["killed_by"] == "chat-42"


def test_the_same_key_is_the_same_process(api: Api) -> None:
    key = {"Idempotency-Key": f"key-{time.time_ns()}"}
    body = {"command": "sleep 60", "env": {"A": "1", "B": "2"}}
    first = api.ask("POST", PROCESSES, body, key)
    again = api.ask("POST", PROCESSES, {"env": {"B": "2", "A": "1"}, "command": "sleep 60"}, key)
    assert (first.status, again.status) == (201, 200)
    assert first.value["id"] == again.value["id"]
    other = api.ask("POST", PROCESSES, {"command": "sleep 61"}, key)
    assert (other.status, other.code) == (422, "bad_value")
    assert api.ask("POST", PROCESSES, body, {"Idempotency-Key": "two words"}).code == "bad_value"
    assert api.ask("POST", PROCESSES, {**body, "id": "proc_0123456789ab"}, key).code == "bad_value"


def test_a_key_of_another_session_is_another_key(api: Api) -> None:
    key = {"Idempotency-Key": f"shared-{time.time_ns()}"}
    one, other = (
        api.ask("POST", PROCESSES, {"command": f"echo {name}"}, {**key, "Holdfast-Session": name, **more})
        for name, more in (("one", {}), ("other", {"Holdfast-Strict": "true"}))
    )
    assert (one.status, other.status) == (201, 201)
    assert one.value["id"] != other.value["id"]
    again = api.ask("POST", PROCESSES, {"command": "echo one"}, {**key, "Holdfast-Session": "one"})
    assert (again.status, again.value["id"]) == (200, one.value["id"])


def test_the_same_id_with_another_command_is_a_conflict(api: Api) -> None:
    body = {"id": f"proc_{os.urandom(6).hex()}", "command": "echo one", "cwd": "/"}
    assert api.ask("POST", PROCESSES, body).status == 201
    assert api.ask("POST", PROCESSES, body).status == 200
    for other in ({"command": "echo two"}, {"cwd": "/tmp"}):
        refused = api.ask("POST", PROCESSES, {**body, **other})
        assert (refused.status, refused.code) == (409, "not_now")


def test_racing_starts_with_one_key_end_in_one_process(api: Api) -> None:
    key = {"Idempotency-Key": f"race-{time.time_ns()}"}
    replies = []

    def start(command: str) -> None:
        replies.append(api.ask("POST", PROCESSES, {"command": command, "session": "raced"}, key))

    threads = [threading.Thread(target=start, args=(f"sleep 6{n % 2}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted({reply.status for reply in replies} - {200}) == [201, 422]
    assert len({reply.value["id"] for reply in replies if reply.status < 300}) == 1
    assert len(api.ask("GET", f"{PROCESSES}?session=raced").value["processes"]) == 1


def test_health_metrics_and_the_description(api: Api) -> None:
    assert api.ask("GET", "/livez").body == b"ok\n"
    assert api.ask("GET", "/readyz").body == b"ok\n"
    api.ask("GET", f"{PROCESSES}/{api.start('echo hi')['id']}/wait")
    figures = dict(
        line.rsplit(" ", 1) for line in api.ask("GET", "/metrics").body.decode().splitlines() if line[0] != "#"
    )
    assert float(figures["holdfast_starts_total"]) >= 1
    assert float(figures['holdfast_ends_total{reason="exited"}']) >= 1
    assert float(figures["holdfast_output_bytes"]) >= 3
    assert figures["holdfast_keeper_reachable"] == "1"
    document = api.ask("GET", "/api/v1/openapi.json").value
    assert document["openapi"] == "3.1.0"
    assert {"/livez", "/metrics", PROCESSES, f"{PROCESSES}/{{id}}/attach"} <= document["paths"].keys()
    assert api.ask("GET", "/api/v1/daemon").value["home"] == str(api.client.paths.home)
    assert api.ask("GET", "/api/v1/daemon/doctor").value["checks"]


@pytest.mark.full
@pytest.mark.slow
def test_without_a_keeper_it_is_alive_but_not_ready(own: Api) -> None:
    status = own.client.status()
    os.kill(status["anchor_pid"], signal.SIGSTOP)  # it would bring up another keeper
    try:
        os.kill(status["keeper_pid"], signal.SIGKILL)
        refused = eventually(lambda: asked if (asked := own.ask("GET", "/readyz")).status != 200 else None, timeout=40)
        assert (refused.status, refused.code) == (503, "unreachable")
        assert refused.value["detail"] == "the keeper does not answer"
        assert own.ask("GET", "/livez").status == 200
        assert b"\nholdfast_keeper_reachable 0\n" in own.ask("GET", "/metrics").body
    finally:
        os.kill(status["anchor_pid"], signal.SIGCONT)
    eventually(lambda: own.ask("GET", "/readyz").status == 200, timeout=20)
    assert own.start("true")["status"] == "running"


def test_a_body_that_never_comes_keeps_no_wait_from_its_end(api: Api) -> None:
    process = api.start("sleep 60")
    announced = {"Content-Length": "10"}
    waited = api.ask("GET", f"{PROCESSES}/{process['id']}/wait?timeout=0.1", headers=announced)
    assert waited.value["timed_out"]


def test_http_is_loaded_with_the_first_request(own: Api) -> None:
    pid = own.client.status()["pid"]
    loaded = Path(f"/proc/{pid}/maps")
    own.client.run("true")
    assert "httptools" not in loaded.read_text()
    assert own.ask("GET", "/livez").status == 200
    assert "httptools" in loaded.read_text()


@pytest.mark.parametrize("name", ["%ff", "%00", "..", "a" * 5000, "💥".encode().hex("%")])
def test_hostile_names(api: Api, name: str) -> None:
    reply = api.ask("GET", f"{PROCESSES}/{name}")
    assert reply.status in (400, 404), json.dumps(reply.value)


def test_a_choice_is_one_of_those(api: Api) -> None:
    path = f"{PROCESSES}/{api.start('echo hi; exec sleep 60')['id']}"
    for query in ("log?view=foo", "log?stream=in", "wait?until=doomsday", "search?pattern=x&stream=in"):
        refused = api.ask("GET", f"{path}/{query}")
        assert (refused.status, refused.code) == (400, "bad_value"), query
        assert "must be one of" in refused.value["detail"]
    for route, fields in (
        (PROCESSES, {"command": "true", "restart": "sometimes"}),
        (PROCESSES, {"command": "true", "lifetime": ["detached"]}),
        (f"{path}/wait", {"until": {}}),
        ("/api/v1/wait", {"processes": [], "mode": "none"}),
    ):
        assert api.ask("POST", route, fields).status == 400
    assert api.ask("POST", PROCESSES, {"command": "true", "lifetime": None}).status == 201
    assert api.ask("GET", "/api/v1/top?sort=size").status == 400


def test_wait_for_a_match_in_every_way(api: Api) -> None:
    process = api.start("echo one; echo Two; exec sleep 60")
    path = f"{PROCESSES}/{process['id']}"
    waited = api.ask("GET", f"{path}/wait?until=match&match=two&ignore_case=true&after=0&timeout=5").value
    assert (waited["done"], waited["matches"][process["id"]]["text"]) == (True, "Two")
    asked = {"until": "match", "match": "o", "timeout": 5}
    waited = api.ask("POST", f"{path}/wait", {**asked, "after": {process["id"]: {"out": 4}}}).value
    assert waited["matches"][process["id"]]["text"] == "Two"
    waited = api.ask("POST", "/api/v1/wait", {**asked, "processes": [process["id"]], "after": 0}).value
    assert waited["matches"][process["id"]]["text"] == "one"
    assert api.ask("POST", f"{path}/wait", {**asked, "until": "output", "after": {}}).status == 400
    hostiles: list[object] = [[], "x", -1, {process["id"]: {"out": "far"}}, {process["id"]: []}]
    for hostile in hostiles:
        assert api.ask("POST", f"{path}/wait", {**asked, "after": hostile}).status == 400, hostile


def test_looking_again_and_at_the_tree(api: Api) -> None:
    path = f"{PROCESSES}/{api.start('echo hi')['id']}"
    api.ask("GET", f"{path}/wait?timeout=5")
    seen = api.ask("GET", path).value
    assert "tree" not in seen
    assert api.ask("GET", f"{path}?seen={seen['seen']}").value == {"unchanged": True}
    assert api.ask("GET", f"{path}?seen=other&tree=true").value["tree"] == []


def test_a_terminal_that_shows_it(api: Api) -> None:
    plain = f"{PROCESSES}/{api.start('exec sleep 60')['id']}"
    assert api.ask("POST", f"{plain}/attached").code == "no_terminal"
    ends = api.ask("POST", PROCESSES, {"command": "exit 3", "pty": True, "attached": True}).value["id"]
    assert api.ask("POST", f"{PROCESSES}/{ends}/attached", {"from": 0}).value == {}


def test_a_page_of_events_may_wait(api: Api) -> None:
    path = f"{PROCESSES}/{api.start('echo one; exec sleep 60')['id']}/log"
    events = {"Accept": "text/event-stream"}
    found = api.ask("GET", f"{path}?from=0&wait=5&follow=false", headers=events).body
    assert b"one" in found and b"event: end" in found
    found = api.ask("GET", f"{path}?from=0&wait=0.05&beyond=4&follow=false", headers=events).body
    assert b"event: end" in found
    assert api.ask("GET", f"{path}?from=0&wait=5", headers=events).status == 400
    assert api.ask("GET", f"{path}?lines=1&wait=5&follow=false", headers=events).status == 400
    assert api.ask("GET", f"{path}?from=0&wait=nan&follow=false", headers=events).status == 400
    assert api.ask("GET", f"{path}?from=0&wait=0.05&beyond=4").value["text"] == "one\n"


def test_a_full_disk_is_not_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert has_space(str(tmp_path))
    fields = list(os.statvfs(tmp_path))
    fields[1], fields[2], fields[4] = 4096, 1 << 20, 255  # of 4 KiB each: a byte short of a MiB and less
    monkeypatch.setattr(os, "statvfs", lambda path: os.statvfs_result(fields))
    assert not has_space(str(tmp_path))
    fields[4] = 256
    assert has_space(str(tmp_path))


def test_without_the_packages_of_http_the_reply_says_what_to_install(home: Path, tmp_path: Path) -> None:
    (tmp_path / "uvicorn.py").write_text("raise ImportError")
    daemon = start_daemon(tmp_path)
    with holdfast.connect() as client:
        answer = Api(client).ask("GET", "/livez")
        client.stop_daemon()
    assert daemon.wait(30) == 0
    assert answer.status == 501
    assert answer.body.endswith(b"pip install .\n")
