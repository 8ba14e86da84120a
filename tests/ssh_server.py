"""An SSH server on loopback that serves files alone, those of one folder, to one user with one key.

    python ssh_server.py FOLDER HOST_KEY PUBLIC_KEY

Prints its port and stops when its standard input is closed.
"""

from __future__ import annotations

import asyncio
import sys

import asyncssh


async def main(folder: str, host_key: str, public_key: str) -> None:
    def files(channel: asyncssh.SSHServerChannel) -> asyncssh.SFTPServer:
        return asyncssh.SFTPServer(channel, chroot=folder.encode())

    options = {"server_host_keys": [host_key], "authorized_client_keys": public_key, "sftp_factory": files}
    server = await asyncssh.listen("127.0.0.1", 0, **options)
    print(server.get_port(), flush=True)
    await asyncio.to_thread(sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
