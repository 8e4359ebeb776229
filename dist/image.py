#!/usr/bin/env python3
"""An OCI image of the binary as a tar, made without a daemon and without network: `docker load`, `podman load`, `skopeo`, `ctr` take it.

It holds what the binary needs and nothing else: its shared libraries, the authorities of TLS certificates, two users and a folder for
data. Equal inputs give equal bytes: entries are sorted, and every time is SOURCE_DATE_EPOCH."""

import argparse
import datetime
import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile

# No user of a machine has this number by default. The chart names it, and what shares a worker's memory needs it.
USER = 10001
DATA = "var/lib/forebay"
AUTHORITIES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")
TEXTS = {
    "etc/passwd": f"root:x:0:0:root:/root:/sbin/nologin\nforebay:x:{USER}:{USER}:Forebay:/{DATA}:/sbin/nologin\n",
    "etc/group": f"root:x:0:\nforebay:x:{USER}:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"


class Layer:
    """Files and folders by their path without / in front."""

    def __init__(self):
        self.entries = {}

    def folder(self, path, mode=0o755, user=0):
        """A folder, and those on the way to it."""
        self.parent(path)
        info = self.info(path, mode, user)
        info.type = tarfile.DIRTYPE
        self.entries[path] = (info, None)

    def file(self, path, data, mode=0o644):
        """A file of root's that all may read."""
        self.parent(path)
        info = self.info(path, mode, 0)
        info.size = len(data)
        self.entries[path] = (info, data)

    def parent(self, path):
        folder = os.path.dirname(path)
        if folder and folder not in self.entries:
            self.folder(folder)

    @staticmethod
    def info(path, mode, user):
        info = tarfile.TarInfo(path)
        info.mode, info.uid, info.gid, info.mtime = mode, user, user, epoch()
        return info

    def tar(self):
        """All of it as a tar, by name."""
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for _, (info, data) in sorted(self.entries.items()):
                tar.addfile(info, io.BytesIO(data) if data is not None else None)
        return out.getvalue()


def epoch():
    return int(os.environ["SOURCE_DATE_EPOCH"])


def libraries(binary):
    """The shared libraries that the binary is started with, its loader among them, at the places where the loader looks for them."""
    told = subprocess.run(["ldd", binary], check=True, stdout=subprocess.PIPE, text=True).stdout
    if "not found" in told:
        sys.exit(f"{binary} needs libraries that are not on this machine:\n{told}")
    return sorted(set(re.findall(r"(/\S+) \(0x", told)))


def copyrights(files):
    """Where this system's packages say whose these files are."""
    found = {}
    for file in files:
        # Packages know files by the place where they are, or by the one that a link of the system's own leads from.
        for name in (os.path.realpath(file), file, os.path.realpath(file).removeprefix("/usr")):
            owner = subprocess.run(["dpkg", "-S", name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            if owner.returncode == 0:
                package = owner.stdout.split(":")[0]
                text = pathlib.Path("/usr/share/doc", package, "copyright")
                found[f"usr/share/doc/{package}/copyright"] = text.read_bytes()
                break
    return found


def system(binary):
    """What is below the binary; the same from version to version, so that it is kept and sent once."""
    layer = Layer()
    layer.folder("tmp", 0o1777)
    layer.folder("run")
    layer.folder(DATA, 0o700, USER)
    for path, text in TEXTS.items():
        layer.file(path, text.encode())
    authorities = next((file for file in AUTHORITIES if os.path.exists(file)), None)
    if not authorities:
        sys.exit(f"no authorities of TLS certificates at {', '.join(AUTHORITIES)}: install ca-certificates")
    layer.file("etc/ssl/certs/ca-certificates.crt", pathlib.Path(authorities).read_bytes())
    found = libraries(binary)
    for library in found:
        layer.file(library.lstrip("/"), pathlib.Path(library).read_bytes(), 0o755)
    if os.path.exists("/usr/bin/dpkg"):
        for path, text in copyrights([*found, "/usr/share/doc/ca-certificates/copyright"]).items():
            layer.file(path, text)
    return layer


def program(args):
    """The binary and the licences."""
    layer = Layer()
    layer.file("usr/bin/forebay", pathlib.Path(args.binary).read_bytes(), 0o755)
    for document in args.document:
        layer.file(f"usr/share/doc/forebay/{os.path.basename(document)}", pathlib.Path(document).read_bytes())
    return layer


def settings(args, created, diff_ids):
    """How the image is run, and what it says of itself."""
    labels = {
        "title": "Forebay",
        "description": "SQL on shared storage at local speed: a cache tier on the compute nodes",
        "version": args.version,
        "licenses": "Apache-2.0",
        "vendor": "Forebay",
        "created": created,
    }
    return {
        "created": created,
        "architecture": args.architecture,
        "os": "linux",
        "config": {
            "User": f"{USER}:{USER}",
            "Env": ["PATH=/usr/bin", f"HOME=/{DATA}", f"FOREBAY_DATA_DIR=/{DATA}/data"],
            "Entrypoint": ["/usr/bin/forebay"],
            "Cmd": ["up"],
            "WorkingDir": f"/{DATA}",
            "Volumes": {f"/{DATA}": {}},
            "StopSignal": "SIGTERM",
            "Labels": {f"org.opencontainers.image.{key}": value for key, value in labels.items()},
        },
        "rootfs": {"type": "layers", "diff_ids": diff_ids},
        "history": [{"created": created, "created_by": what} for what in ("libraries and authorities", f"forebay {args.version}")],
    }


class Blobs(dict):
    """What an image is made of, by its digest."""

    def add(self, data, media_type):
        """Keeps it, and gives its descriptor."""
        digest = hashlib.sha256(data).hexdigest()
        self[digest] = data
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}


def as_json(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--binary", "--version", "--architecture", "--out"):
        parser.add_argument(name, required=True)
    parser.add_argument("--document", action="append", default=[], help="a file that goes in beside the binary")
    args = parser.parse_args()

    created = datetime.datetime.fromtimestamp(epoch(), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    tars = [system(args.binary).tar(), program(args).tar()]
    blobs = Blobs()
    layers = [blobs.add(gzip.compress(tar, compresslevel=6, mtime=0), LAYER) for tar in tars]
    diff_ids = [f"sha256:{hashlib.sha256(tar).hexdigest()}" for tar in tars]
    config = blobs.add(as_json(settings(args, created, diff_ids)), CONFIG)
    manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers}
    described = blobs.add(as_json(manifest), MANIFEST)
    described["annotations"] = {
        "org.opencontainers.image.ref.name": args.version,
        "io.containerd.image.name": f"docker.io/library/forebay:{args.version}",
    }
    described["platform"] = {"architecture": args.architecture, "os": "linux"}

    files = Layer()
    files.file("oci-layout", as_json({"imageLayoutVersion": "1.0.0"}))
    files.file("index.json", as_json({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [described]}))
    # What `docker load` reads that does not know layouts yet.
    paths = [f"blobs/sha256/{layer['digest'].removeprefix('sha256:')}" for layer in layers]
    old = {"Config": f"blobs/sha256/{config['digest'].removeprefix('sha256:')}", "RepoTags": [f"forebay:{args.version}"], "Layers": paths}
    files.file("manifest.json", as_json([old]))
    for digest, data in blobs.items():
        files.file(f"blobs/sha256/{digest}", data)
    pathlib.Path(args.out).write_bytes(files.tar())


if __name__ == "__main__":
    main()
