"""The image: that it is what the OCI's layout says, made the same again, and that it runs where there is nothing else."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import unittest

from test_packages import UP, VERSION
from tools import ROOT, answer, folder, needs_root, package, running, told

USER = 10001


def unpack(image, place):
    """The root file system of an image: its layers one over the other. Gives its settings."""
    place.chmod(0o755)
    with tarfile.open(image) as tar:
        def read(descriptor):
            data = tar.extractfile(f"blobs/sha256/{descriptor['digest'].removeprefix('sha256:')}").read()
            assert f"sha256:{hashlib.sha256(data).hexdigest()}" == descriptor["digest"] and len(data) == descriptor["size"]
            return data
        assert json.load(tar.extractfile("oci-layout")) == {"imageLayoutVersion": "1.0.0"}
        (described,) = json.load(tar.extractfile("index.json"))["manifests"]
        manifest = json.loads(read(described))
        settings = json.loads(read(manifest["config"]))
        for layer, diff_id in zip(manifest["layers"], settings["rootfs"]["diff_ids"], strict=True):
            plain = subprocess.run(["gzip", "-dc"], input=read(layer), check=True, stdout=subprocess.PIPE).stdout
            assert f"sha256:{hashlib.sha256(plain).hexdigest()}" == diff_id
            subprocess.run(["tar", "-C", place, "--numeric-owner", "-xpf", "-"], input=plain, check=True)
        # What old versions of `docker load` go by names the same blobs.
        (old,) = json.load(tar.extractfile("manifest.json"))
        for name in [old["Config"], *old["Layers"]]:
            tar.getmember(name)
    return settings


def entered(place, settings, *words, **variables):
    """A command, and its environment, that runs the image's program in its root file system as its user."""
    environment = dict(line.split("=", 1) for line in settings["config"]["Env"])
    chroot = [shutil.which("chroot"), f"--userspec={settings['config']['User']}", "--groups=", place]
    return [*chroot, *settings["config"]["Entrypoint"], *words], environment | variables


class Image(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = cls.enterClassContext(folder())
        if os.geteuid() == 0:
            cls.settings = unpack(package("-image.tar"), cls.place)

    def test_the_same_inputs_give_the_same_image(self):
        with folder() as place:
            told("tar", "-C", place, "-xzf", package("-linux.tar.gz"))
            (top,) = place.iterdir()
            for file in ("one.tar", "two.tar"):
                told(sys.executable, ROOT / "dist/image.py", "--binary", top / "forebay", "--version", VERSION, "--architecture", "amd64",
                     "--document", top / "LICENSE", "--out", place / file, env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"})
                # Whenever and by whomever the files were written.
                (top / "forebay").touch()
                (top / "LICENSE").chmod(0o600)
            self.assertTrue((place / "one.tar").read_bytes() == (place / "two.tar").read_bytes(), "another image came of it")

    @needs_root
    def test_the_image_has_a_user_authorities_and_licences_and_no_shell(self):
        self.assertEqual(self.settings["config"]["User"], f"{USER}:{USER}")
        self.assertEqual(self.settings["config"]["Labels"]["org.opencontainers.image.version"], VERSION)
        self.assertIn("BEGIN CERTIFICATE", (self.place / "etc/ssl/certs/ca-certificates.crt").read_text())
        for name in ("LICENSE", "THIRD-PARTY.txt"):
            self.assertTrue((self.place / "usr/share/doc/forebay" / name).is_file())
        self.assertFalse((self.place / "bin").exists())
        data = (self.place / "var/lib/forebay").stat()
        self.assertEqual((data.st_uid, data.st_mode & 0o777), (USER, 0o700))

    @needs_root
    def test_the_image_runs_with_nothing_but_itself(self):
        command, environment = entered(self.place, self.settings, "--version")
        self.assertEqual(told(*command, env=environment), f"forebay {VERSION}\n")
        (self.place / "proc").mkdir(exist_ok=True)
        told("mount", "-t", "proc", "proc", self.place / "proc")
        self.addCleanup(told, "umount", self.place / "proc")
        command, environment = entered(self.place, self.settings, *UP)
        with running(command, env=environment) as process:
            self.assertEqual(answer("http://127.0.0.1:17480/readyz", process), "ready\n")
        self.assertEqual((self.place / "var/lib/forebay/data/metadata.db").stat().st_uid, USER)
