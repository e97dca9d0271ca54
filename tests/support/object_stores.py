"""An S3 that the tests start on this machine (moto's server), and what is in it."""

import contextlib
import importlib.util
import logging
import os
import uuid
from unittest.mock import patch

import pytest

CLOUD = ("s3fs", "moto", "flask")


def skip_without_cloud():
    if missing := [name for name in CLOUD if importlib.util.find_spec(name) is None]:
        pytest.skip(f"the tests of the extra cloud need {', '.join(missing)}, which is not installed")


class Bucket:
    """A new bucket; `client` is boto3's, `env` what a process needs to reach it."""

    def __init__(self, server, client, name):
        self.server, self.client, self.name = server, client, name
        self.address = f"s3://{name}"
        self.env = dict(server.env)

    def keys(self, prefix="", *, hidden=False):
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=prefix)
        found = [row["Key"] for page in pages for row in page.get("Contents", [])]
        return sorted(key for key in found if hidden or "/." not in f"/{key}")

    def read(self, key):
        return self.client.get_object(Bucket=self.name, Key=key)["Body"].read()

    def put(self, key, content):
        self.client.put_object(Bucket=self.name, Key=key, Body=content)

    def upload_folder(self, folder, prefix):
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                self.put(f"{prefix}/{path.relative_to(folder).as_posix()}", path.read_bytes())


class MotoServer:
    def __init__(self):
        from moto.server import ThreadedMotoServer

        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self.server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self.server.start()
        host, port = self.server.get_host_and_port()
        self.env = {
            "AWS_ENDPOINT_URL": f"http://{host}:{port}",
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def make_bucket(self, name=None):
        import boto3

        # Its credentials are of no account: nothing outside this machine is reached.
        client = boto3.client(
            "s3",
            endpoint_url=self.env["AWS_ENDPOINT_URL"],
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
            region_name="us-east-1",
        )
        name = name or f"bucket-{uuid.uuid4().hex[:8]}"
        client.create_bucket(Bucket=name)
        return Bucket(self, client, name)


@contextlib.contextmanager
def environment(env, cache):
    """Reach this store from this process, with this cache folder: another cache is another machine."""
    with patch.dict(os.environ, {**env, "HARDLOOK_CACHE": str(cache)}):
        yield


def start_for_page(request, folder):
    """An S3 with the bucket `my-bucket` while a page of the documentation runs; the environment that reaches it."""
    skip_without_cloud()
    server = MotoServer()
    request.addfinalizer(server.server.stop)
    server.make_bucket("my-bucket")
    return {**server.env, "HARDLOOK_CACHE": str(folder / "cache")}
