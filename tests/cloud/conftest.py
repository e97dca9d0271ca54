"""One S3 server for all tests of the extra `cloud`, a new bucket for each."""

import pytest
from object_stores import MotoServer, environment, skip_without_cloud


@pytest.fixture(scope="session")
def s3_server():
    skip_without_cloud()
    server = MotoServer()
    yield server
    server.server.stop()


@pytest.fixture
def bucket(s3_server, tmp_path):
    """A new bucket that this process can reach; its cache folder is empty."""
    made = s3_server.make_bucket()
    with environment(made.env, tmp_path / "cache"):
        yield made
