"""The cluster files of deploy/: their commands parse, their keys are those of the cluster, the Slurm script runs.

No cluster is started: the tasks of the Slurm array run one by one with the variables that Slurm sets, and the files for
KubeRay and SkyPilot are compared with the fields that these document.
"""

import os
import re
import shlex
import subprocess
import tomllib
from pathlib import Path

import pytest
from command_server import command_folders
from parsed_commands import parse_command

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
SLURM, RAYJOB, SKY = DEPLOY / "slurm-array.sh", DEPLOY / "rayjob.yaml", DEPLOY / "sky.yaml"

# Fields of KubeRay's API ray.io/v1 that are used here, with their types; those of REQUIRED_FIELDS must be given.
JOB_FIELDS = {
    "entrypoint": str, "backoffLimit": int, "shutdownAfterJobFinishes": bool, "ttlSecondsAfterFinished": int,
    "rayClusterSpec": dict, "runtimeEnvYAML": str, "submissionMode": str, "activeDeadlineSeconds": int, "suspend": bool,
}  # fmt: skip
CLUSTER_FIELDS = {"rayVersion": str, "headGroupSpec": dict, "workerGroupSpecs": list, "enableInTreeAutoscaling": bool}
HEAD_FIELDS = {"rayStartParams": dict, "template": dict, "serviceType": str}
WORKER_FIELDS = {
    "groupName": str, "replicas": int, "minReplicas": int, "maxReplicas": int, "rayStartParams": dict, "template": dict,
    "numOfHosts": int,
}  # fmt: skip
# Top-level fields of a SkyPilot task and of a bucket that is mounted.
TASK_FIELDS = {"name": str, "num_nodes": int, "resources": dict, "workdir": str, "envs": dict, "file_mounts": dict,
               "setup": str, "run": str, "secrets": dict, "volumes": dict, "config": dict}  # fmt: skip
MOUNT_FIELDS = {"name": str, "source": str, "store": str, "mode": str, "persistent": bool}


def read_yaml(path):
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    return yaml.safe_load(path.read_text())


def check_fields(given, fields, required=()):
    """Every field is a known one of its type; all required ones are there."""
    assert set(required) <= set(given) <= set(fields), sorted(set(given) ^ set(required))
    for name, value in given.items():
        assert type(value) is fields[name], f"{name}: {value!r}"


def run_task(folder, task, *words, first=1, last=3, count=None, **changes):
    """Run one task of an array in the folder, as Slurm would."""
    array = {"ID": task, "MIN": first, "MAX": last, "COUNT": count or last - first + 1}
    given = {f"SLURM_ARRAY_TASK_{name}": str(value) for name, value in array.items()}
    path = os.pathsep.join([*command_folders(), os.environ["PATH"]])
    environment = {**os.environ, **given, "PATH": path, **changes}
    command = ["bash", str(SLURM), *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


def record_calls(folder):
    """A folder with a program `hardlook` that prints its arguments, one per line, and does nothing else."""
    folder.mkdir()
    program = folder / "hardlook"
    program.write_text('#!/bin/sh\nprintf "%s\\n" hardlook "$@"\n')
    program.chmod(0o755)
    return folder


def test_tasks_of_the_slurm_array_give_the_scores_of_one_process(tmp_path):
    words = ("closed-miou", "--scenes", "12", "--resamples", "50", "--batch-size", "2")
    for task in (3, 1):
        done = run_task(tmp_path, task, *words, "--out", "shared")
        assert done.returncode == 0, done.stderr
        assert not (tmp_path / "shared" / "scores.json").exists()
    # The task that was lost, submitted again on its own: an array of one, which does what is missing.
    done = run_task(tmp_path, 2, *words, "--out", "shared", first=2, last=2)
    assert done.returncode == 0, done.stderr
    whole = [*command_folders(), os.environ["PATH"]]
    command = ["hardlook", "run", *words, "--out", "whole", "--quiet"]
    subprocess.run(command, cwd=tmp_path, env={**os.environ, "PATH": os.pathsep.join(whole)}, check=True, timeout=120,
                   capture_output=True)  # fmt: skip
    shared, alone = (tmp_path / name / "scores.json" for name in ("shared", "whole"))
    assert shared.read_bytes() == alone.read_bytes()


def test_an_array_may_start_anywhere_and_must_have_no_gaps(tmp_path):
    path = os.pathsep.join([str(record_calls(tmp_path / "bin")), os.environ["PATH"]])
    words = ("closed-miou", "--data", "voc=/with blank/VOC2012", "--model", "mine:Net", "--out", "run")
    shards = []
    for task in range(4):
        called = run_task(tmp_path, task, *words, first=0, last=3, PATH=path).stdout.splitlines()
        assert tuple(called[2 : 2 + len(words)]) == words
        shards.append(parse_command(called)["shard"])
    assert shards == ["1/4", "2/4", "3/4", "4/4"]
    gaps = run_task(tmp_path, 1, *words, first=1, last=7, count=4, PATH=path)
    assert gaps.returncode == 2 and "without gaps" in gaps.stderr
    assert run_task(tmp_path, 1, PATH=path).returncode == 2
    plain = subprocess.run(["bash", str(SLURM), *words], capture_output=True, text=True, check=False)
    assert plain.returncode and "sbatch --array" in plain.stderr


def test_slurm_reads_the_scripts_options_and_signals_hardlook():
    lines = SLURM.read_text().splitlines()
    first_command = next(place for place, line in enumerate(lines) if line and not line.startswith("#"))
    options = {}
    for place, line in enumerate(lines):
        if line.startswith("#SBATCH"):
            assert place < first_command, "Slurm reads no options behind the first command"
            name, value = re.fullmatch(r"#SBATCH --([a-z-]+)(?:=(\S+))?", line).groups()
            options[name] = value
    assert {"array", "time", "requeue", "open-mode"} <= set(options)
    # B: the signal goes to the script's own process, which hardlook has taken over by exec.
    assert re.fullmatch(r"B:USR1@\d+", options["signal"]) and lines[-1].startswith("exec hardlook run ")
    subprocess.run(["bash", "-n", SLURM], check=True)
    example = next(line for line in lines if line.startswith("#   sbatch"))
    words = shlex.split(example[1:])
    assert ROOT / words[2] == SLURM and parse_command(["hardlook", "run", *words[3:]])["model"]


def test_the_rayjob_has_the_fields_of_kuberay():
    job = read_yaml(RAYJOB)
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,45}[a-z0-9])?", job["metadata"]["name"])  # KubeRay adds to it
    assert set(job) == {"apiVersion", "kind", "metadata", "spec"}
    check_fields(job["spec"], JOB_FIELDS, ("entrypoint", "rayClusterSpec"))
    cluster = job["spec"]["rayClusterSpec"]
    check_fields(cluster, CLUSTER_FIELDS, ("headGroupSpec", "rayVersion"))
    check_fields(cluster["headGroupSpec"], HEAD_FIELDS, ("rayStartParams", "template"))
    needed = ("groupName", "minReplicas", "maxReplicas", "rayStartParams", "template")
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    for group in groups[1:]:
        check_fields(group, WORKER_FIELDS, needed)
        assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]
    for group in groups:
        # Kubernetes takes parameters of `ray start` as texts only.
        assert all(isinstance(value, str) for value in group["rayStartParams"].values())
        [container] = group["template"]["spec"]["containers"]
        assert set(container) == {"name", "image", "resources", "volumeMounts"}
        assert container["resources"]["requests"] == container["resources"]["limits"]
        volumes = {volume["name"] for volume in group["template"]["spec"]["volumes"]}
        assert {mount["name"] for mount in container["volumeMounts"]} == volumes


def test_the_rayjobs_command_fits_its_cluster():
    spec = read_yaml(RAYJOB)["spec"]
    cluster = spec["rayClusterSpec"]
    given = parse_command(shlex.split(spec["entrypoint"]))
    assert (given["engine"], given["address"], given["quiet"]) == ("ray", "auto", True)
    [group] = cluster["workerGroupSpecs"]
    pods = [one["template"]["spec"]["containers"][0] for one in (cluster["headGroupSpec"], group)]
    assert given["workers"] * given["gpus"] == group["replicas"] * int(pods[1]["resources"]["limits"]["nvidia.com/gpu"])
    assert given["device"] == "cuda" and all("nvidia.com/gpu" in pod["resources"]["limits"] for pod in pods)
    # Data and runs are on the volume that all pods see.
    [mount] = {mount["mountPath"] for pod in pods for mount in pod["volumeMounts"]}
    assert str(given["out"]).startswith(f"{mount}/")
    assert all(pair.partition("=")[2].startswith(f"{mount}/") for pair in given["data"])
    assert len({pod["image"] for pod in pods}) == 1 and pods[0]["image"].endswith(f":{cluster['rayVersion']}")
    assert f"ray=={cluster['rayVersion']}" in (ROOT / "constraints.txt").read_text().splitlines()


def test_the_skypilot_task_has_known_fields_and_its_command_parses(tmp_path):
    task = read_yaml(SKY)
    check_fields(task, TASK_FIELDS, ("run", "setup", "resources"))
    assert set(task["resources"]) <= {"accelerators", "use_spot", "cpus", "memory", "infra", "disk_size"}
    assert all(isinstance(value, str) for value in task["envs"].values())
    for mount in task["file_mounts"].values():
        check_fields(mount, MOUNT_FIELDS, ("source", "mode"))
        assert mount["mode"] in ("MOUNT", "COPY", "MOUNT_CACHED")
    extras = re.search(r'"hardlook\[([a-z,]+)\]"', task["setup"])[1].split(",")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {"ray"} <= set(extras) <= set(project["optional-dependencies"])

    # The shell lines as they stand, on two nodes; SkyPilot's own script and hardlook only say that they were called.
    home, path = tmp_path / "home", record_calls(tmp_path / "bin")
    (home / "sky_templates" / "ray").mkdir(parents=True)
    start = home / "sky_templates" / "ray" / "start_cluster"
    start.write_text("#!/bin/sh\necho started >&2\n")
    start.chmod(0o755)
    called = []
    for rank in range(task["num_nodes"]):
        variables = {"SKYPILOT_NODE_RANK": str(rank), "SKYPILOT_NUM_NODES": str(task["num_nodes"]),
                     "SKYPILOT_NUM_GPUS_PER_NODE": "1", "HOME": str(home)}  # fmt: skip
        environment = {**os.environ, **task["envs"], **variables, "PATH": f"{path}{os.pathsep}{os.environ['PATH']}"}
        done = subprocess.run(["bash", "-c", task["run"]], env=environment, capture_output=True, text=True, check=True)
        assert done.stderr == "started\n"
        called.append(done.stdout.splitlines())
    assert called[1] == []
    given = parse_command(called[0])
    assert (given["engine"], given["workers"], given["model"]) == ("ray", task["num_nodes"], task["envs"]["MODEL"])
    mounts = task["file_mounts"]
    assert str(given["out"]).startswith("/runs/") and mounts["/runs"]["mode"] == "MOUNT_CACHED"
    assert all(pair.partition("=")[2].startswith("/data/") for pair in given["data"]) and "/data" in mounts
