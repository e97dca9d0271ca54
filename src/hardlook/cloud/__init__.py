"""Data and run folders in object stores: addresses such as `s3://bucket/folder` (extra `cloud`)."""
