"""The tar.gz, the deb, the rpm and the wheel: what is in them, and that they install, run and go away."""

import hashlib
import os
import pathlib
import re
import subprocess
import sys
import unittest
import zipfile

from tools import OUT, ROOT, answer, clean, folder, needs_root, package, running, told

VERSION = next(line for line in (ROOT / "Cargo.toml").read_text().splitlines() if line.startswith("version = ")).split('"')[1]
# All on one machine, at ports of their own, since a Forebay may run here already.
UP = ["up", "--coordinator", "127.0.0.1:17400", "--worker-listen", "127.0.0.1:17401", "--flight", "off", "--s3", "off",
      "--http", "127.0.0.1:17480", "--dram", "64MiB", "--disk", "0B"]
# In a root file system that is this machine's with changes that go away with the namespace.
OVERLAY = """set -e
mount -t tmpfs none {0}
mkdir {0}/upper {0}/work {0}/root
mount -t overlay overlay -o lowerdir=/,upperdir={0}/upper,workdir={0}/work {0}/root
mount --bind {1} {0}/root/mnt
exec chroot {0}/root sh -ec '{2}'
"""


def overlay(script):
    """What a shell prints that may change everything without changing anything. The packages are in /mnt."""
    with folder() as place:
        return told("unshare", "--mount", "--propagation", "private", "sh", "-c", OVERLAY.format(place, OUT, script))


class Sums(unittest.TestCase):
    def test_the_sums_are_those_of_all_packages(self):
        lines = dict(reversed(line.split("  ")) for line in (OUT / "SHA256SUMS").read_text().splitlines())
        files = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in OUT.iterdir() if file.name != "SHA256SUMS"}
        self.assertEqual(lines, files)


class TarGz(unittest.TestCase):
    def test_the_tar_has_what_its_pages_say_and_runs(self):
        with folder() as place:
            told("tar", "-C", place, "-xzf", package("-linux.tar.gz"))
            (top,) = place.iterdir()
            names = {str(file.relative_to(top)) for file in top.rglob("*") if file.is_file()}
            self.assertLessEqual({"forebay", "LICENSE", "README.md", "INSTALL.md", "THIRD-PARTY.txt", "forebay.toml", "forebay.env",
                                  "systemd/forebay.service", "completions/forebay.bash", "monitoring/alerts.yaml",
                                  "monitoring/forebay.json"}, names)
            self.assertEqual(told(top / "forebay", "--version", env=clean()), f"forebay {VERSION}\n")
            # It is a settings file that the binary takes, as it is and with all that is commented out.
            lines = (top / "forebay.toml").read_text().splitlines()
            (place / "whole.toml").write_text("\n".join(line.removeprefix("# ") if " = " in line else line for line in lines))
            for file in (top / "forebay.toml", place / "whole.toml"):
                self.assertIn('data-dir = "/var/lib/forebay"', told(top / "forebay", "--config", file, "config", env=clean()))
            self.assertIn('advertise = "node1.example:7401"', told(top / "forebay", "--config", place / "whole.toml", "config", env=clean()))
            with running([top / "forebay", *UP], env=clean(FOREBAY_DATA_DIR=str(place / "data"))) as process:
                self.assertEqual(answer("http://127.0.0.1:17480/readyz", process), "ready\n")

    def test_completions_are_what_their_shells_can_read(self):
        with folder() as place:
            told("tar", "-C", place, "-xzf", package("-linux.tar.gz"), "--wildcards", "*/completions/*")
            (script,) = place.rglob("forebay.bash")
            self.assertIn("forebay", told("bash", "-ec", f"source {script}; complete -p forebay"))

    def test_every_licence_of_what_is_built_in_is_named(self):
        with folder() as place:
            told("tar", "-C", place, "-xzf", package("-linux.tar.gz"), "--wildcards", "*/THIRD-PARTY.txt")
            text = next(place.rglob("THIRD-PARTY.txt")).read_text()
        for crate in ("\ndatafusion ", "\ntokio ", "\npyo3 ", "\nring ", "\nzstd-sys ", "\nlibsqlite3-sys "):
            self.assertIn(crate, text)
        self.assertIn("Permission is hereby granted, free of charge", text)
        self.assertNotIn("\nproptest ", text, "only tests need it")


class Deb(unittest.TestCase):
    def test_the_deb_says_what_it_needs_and_which_files_are_settings(self):
        said = told("dpkg-deb", "--field", package(".deb"))
        self.assertIn(f"Version: {VERSION}\n", said)
        self.assertRegex(said, r"Depends: libc6 \(>= 2\.\d+\), libgcc-s1, passwd\n")
        self.assertEqual(told("dpkg-deb", "--info", package(".deb"), "conffiles").split(),
                         ["/etc/forebay/forebay.env", "/etc/forebay/forebay.toml"])

    def test_lintian_has_nothing_against_the_deb(self):
        # It warns when it is root's.
        said = subprocess.run(["lintian", "--fail-on", "error,warning", "--allow-root", package(".deb")], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        self.assertEqual(said.returncode, 0, said.stdout)

    @needs_root
    def test_the_deb_installs_keeps_changed_settings_and_goes_away_whole(self):
        said = overlay(f"""
            dpkg -i /mnt/{package(".deb").name} >/dev/null
            forebay --version
            getent passwd forebay | cut -d: -f1,6
            stat -c "%U %a" /var/lib/forebay
            cd / && setpriv --reuid forebay --regid forebay --clear-groups forebay --config /etc/forebay/forebay.toml config | grep ^data-dir
            echo "lease = \\"7s\\"" >>/etc/forebay/forebay.toml
            dpkg -i /mnt/{package(".deb").name} >/dev/null
            tail -n 1 /etc/forebay/forebay.toml
            touch /var/lib/forebay/kept
            dpkg --remove forebay >/dev/null
            ls /usr/bin/forebay 2>/dev/null || echo removed
            ls /etc/forebay/forebay.toml /var/lib/forebay/kept
            dpkg --purge forebay >/dev/null
            ls -d /etc/forebay /var/lib/forebay 2>/dev/null || echo purged
        """)
        self.assertEqual(said.splitlines(), [
            f"forebay {VERSION}", "forebay:/var/lib/forebay", "forebay 700", 'data-dir = "/var/lib/forebay"', 'lease = "7s"', "removed",
            "/etc/forebay/forebay.toml", "/var/lib/forebay/kept", "purged"])


class Rpm(unittest.TestCase):
    def test_the_rpm_has_the_files_of_the_deb(self):
        rpm = set(told("rpm", "-qlp", package(".rpm")).splitlines())
        with folder() as place:
            told("dpkg-deb", "-x", package(".deb"), place / "deb")
            (place / "rpm").mkdir()
            told("sh", "-ec", f"cd {place}/rpm && rpm2cpio {package('.rpm')} | cpio -idm --quiet --no-absolute-filenames")
            both = [{str(file.relative_to(place / kind)): file for file in (place / kind).rglob("*") if file.is_file()} for kind in ("deb", "rpm")]
            self.assertEqual({f"/{name}" for name in both[1]}, rpm)
            own = {"usr/share/licenses/forebay/LICENSE", "usr/share/zsh/site-functions/_forebay"}
            self.assertEqual(both[1].keys() - both[0].keys(), own)
            for name in both[1].keys() & both[0].keys():
                self.assertEqual(both[0][name].read_bytes(), both[1][name].read_bytes(), name)
            self.assertEqual(told(both[1]["usr/bin/forebay"], "--version", env=clean()), f"forebay {VERSION}\n")
        self.assertEqual(told("rpm", "-qpc", package(".rpm")).split(), ["/etc/forebay/forebay.env", "/etc/forebay/forebay.toml"])
        self.assertRegex(told("rpm", "-qp", "--requires", package(".rpm")), r"glibc >= 2\.\d+\nlibgcc\nshadow-utils\n")

    @needs_root
    def test_the_rpm_installs_and_goes_away(self):
        # --nodeps: this machine's libraries may be of another system.
        # Debian's rpm has something to say to that.
        said = overlay(f"""
            exec 2>/dev/null
            rpm -i --nodeps /mnt/{package(".rpm").name}
            forebay --version
            stat -c "%U %a" /var/lib/forebay
            rpm -e --nodeps forebay
            ls /usr/bin/forebay 2>/dev/null || echo removed
            ls -d /var/lib/forebay
        """)
        self.assertEqual(said.splitlines(), [f"forebay {VERSION}", "forebay 700", "removed", "/var/lib/forebay"])


class Wheel(unittest.TestCase):
    def setUp(self):
        if not list(OUT.glob("*.whl")):
            self.skipTest("the Python wheel, since DIST_WHEEL names none: .ci/test-python builds one")

    @staticmethod
    def install(place):
        # pip holds each file to its sum in RECORD.
        told(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index",
             "--target", place, package(".whl"))

    def test_every_block_of_the_tutorial_runs_with_nothing_but_the_wheel(self):
        blocks = re.findall(r"^```sh\n(.*?)^```$", (ROOT / "docs/tutorial.md").read_text(), flags=re.MULTILINE | re.DOTALL)
        self.assertGreaterEqual(len(blocks), 8)
        with folder() as place:
            home, wheel = place / "home", place / "wheel"
            home.mkdir()
            self.install(wheel)
            # Where the data comes from is the machine's matter.
            index = {name: value for name, value in os.environ.items() if name.startswith("PIP_") or name.lower().endswith("_proxy")}
            ports = {"FOREBAY_COORDINATOR": "127.0.0.1:17400", "FOREBAY_WORKER_LISTEN": "127.0.0.1:17401", "FOREBAY_HTTP": "127.0.0.1:17480"}
            off = {"FOREBAY_FLIGHT": "off", "FOREBAY_S3": "off", "FOREBAY_DRAM": "256MiB", "FOREBAY_DISK": "512MiB"}
            path = {"PATH": f"{wheel}/bin:{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONPATH": str(wheel), "HOME": str(home)}
            script = "set -eu -o pipefail\n" + "echo ----\n".join(blocks)
            said = told("timeout", "300", "bash", "-c", script, env=clean(**index, **ports, **off, **path), cwd=home)
        for words in ("| 336776  | 105          |", "United Air Lines Inc.", "| 58665   |", "month=7/", "| 7     | 29425   |", "flights\n707\n"):
            self.assertIn(words, said)

    def test_the_wheel_installs_and_has_the_licences(self):
        with zipfile.ZipFile(package(".whl")) as wheel:
            self.assertIsNone(wheel.testzip())
            names = {name.split(".dist-info/")[1] for name in wheel.namelist() if ".dist-info/" in name}
        self.assertLessEqual({"METADATA", "RECORD", "licenses/LICENSE", "licenses/THIRD-PARTY.txt"}, names)
        with folder() as place:
            self.install(place)
            said = told(sys.executable, "-c", "import forebay; print(forebay.__file__)", env=clean(PYTHONPATH=str(place)))
            self.assertTrue(pathlib.Path(said.strip()).is_relative_to(place), said)
