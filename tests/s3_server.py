"""An S3 server on loopback (moto), which checks signatures and permissions: runs in .venv.s3, see s3_server.txt.

Prints one line of JSON, its address and the keys of its user, and stops when its standard input is closed. It has two
buckets: `private` for that user alone, and `public`, which its policy lets everybody read.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from moto import settings
from moto.core import DEFAULT_ACCOUNT_ID
from moto.core.authorization import ActionAuthenticatorMixin
from moto.iam.access_control import PermissionResult
from moto.iam.models import iam_backends
from moto.s3.exceptions import BucketAccessDeniedError
from moto.s3.models import s3_backends
from moto.server import ThreadedMotoServer

REGION = "us-east-1"
READ = ["s3:GetObject", "s3:ListBucket"]

settings.INITIAL_NO_AUTH_ACTION_COUNT = 0  # moto believes everybody unless it is told not to
of_the_signed = ActionAuthenticatorMixin._authenticate_and_authorize_s3_action


def authorise(self: Any, bucket_name: str | None = None, key_name: str | None = None) -> None:
    """As S3 does: who signs a request is judged by the policies of that user, who does not by the bucket's policy.

    moto does the first; where there is no signature at all, it fails.
    """
    if "Authorization" in self.headers:
        return of_the_signed(self, bucket_name, key_name)
    action = {"HeadObject": "GetObject", "ListObjects": "ListBucket", "ListObjectsV2": "ListBucket"}
    name = self._get_action()
    resource = f"arn:aws:s3:::{bucket_name}" + (f"/{key_name}" if key_name else "")
    allowed = self.backend.get_bucket(bucket_name).get_permission(f"s3:{action.get(name, name)}", resource)
    if allowed != PermissionResult.PERMITTED:
        raise BucketAccessDeniedError(bucket=bucket_name)
    return None


ActionAuthenticatorMixin._authenticate_and_authorize_s3_action = authorise


def policy(actions: list[str], resources: list[str], **more: str) -> str:
    statement = {"Effect": "Allow", "Action": actions, "Resource": resources, **more}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def main() -> None:
    s3, iam = s3_backends[DEFAULT_ACCOUNT_ID]["aws"], iam_backends[DEFAULT_ACCOUNT_ID]["aws"]
    for bucket in ("private", "public"):
        s3.create_bucket(bucket, REGION)
    everybody = policy(READ, ["arn:aws:s3:::public", "arn:aws:s3:::public/*"], Principal="*")
    s3.put_bucket_policy("public", everybody.encode())
    iam.create_user(REGION, "researcher")
    iam.put_user_policy("researcher", "storage", policy(["s3:*"], ["*"]))
    key = iam.create_access_key("researcher")

    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    ready = {"url": f"http://{host}:{port}", "key": key.access_key_id, "secret": key.secret_access_key}
    print(json.dumps(ready), flush=True)
    sys.stdin.read()
    server.stop()


if __name__ == "__main__":
    main()
