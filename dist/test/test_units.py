"""The units of systemd: as systemd reads them, and started by one that is booted for it."""

import pathlib
import re
import shutil
import unittest

from tools import ROOT, clean, folder, needs_root, package, told

ROLES = {"": "up", "-coordinator": "coordinator", "-worker": "worker", "-scheduler": "scheduler", "-executor": "executor", "-gateway": "gateway"}
# systemd's own measure of what a unit may do that it need not: 0 nothing, 100 everything.
EXPOSURE_MAX = 20


class Units(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = cls.enterClassContext(folder())
        told("dpkg-deb", "-x", package(".deb"), cls.place)
        cls.folder = cls.place / "usr/lib/systemd/system"
        cls.units = {file.name: file.read_text() for file in cls.folder.iterdir()}
        # The targets that they name, which are systemd's own.
        for file in pathlib.Path("/lib/systemd/system").iterdir():
            if file.suffix in (".target", ".slice", ".mount") or file.name.startswith("systemd-tmpfiles"):
                shutil.copy(file, cls.folder, follow_symlinks=False)

    def test_there_is_a_unit_for_each_role_that_the_binary_has(self):
        self.assertEqual(set(self.units), {f"forebay{role}.service" for role in ROLES})
        for role, command in ROLES.items():
            text = self.units[f"forebay{role}.service"]
            self.assertIn(f"\nExecStart=/usr/bin/forebay {command}\n", text)
            self.assertIn(f"\nEnvironmentFile=-/etc/forebay/{command}.env\n", text)
            self.assertIn("--data-dir", told(self.place / "usr/bin/forebay", command, "--help", env=clean()))

    def test_systemd_verifies_the_units_without_a_warning(self):
        for name in self.units:
            self.assertEqual(told("systemd-analyze", "--man=no", f"--root={self.place}", "verify", name), "")

    def test_a_word_that_systemd_does_not_know_would_be_seen(self):
        path = self.folder / "forebay-wrong.service"
        path.write_text(self.units["forebay.service"].replace("ProtectSystem=", "ProtectSytem="))
        self.addCleanup(path.unlink)
        self.assertIn("ProtectSytem", told("systemd-analyze", "--man=no", f"--root={self.place}", "verify", path.name))

    def test_the_units_may_do_little_that_they_need_not(self):
        for name in self.units:
            said = told("systemd-analyze", "security", "--offline=true", f"--root={self.place}", f"--threshold={EXPOSURE_MAX}",
                        "--no-pager", name)
            self.assertRegex(said, r"exposure level for")
            self.assertLess(float(re.search(r": ([\d.]+) ", said[said.index("exposure level"):])[1]) * 10, EXPOSURE_MAX, said)

    @needs_root
    def test_the_units_start_answer_and_stop_below_a_systemd_of_their_own(self):
        with folder() as place:
            shutil.copy(ROOT / "dist/test/booted.sh", place)
            boot = told("unshare", "--mount", "--propagation", "private", ROOT / "dist/test/boot.sh", package(".deb"), place)
            log = place / "log"
            self.assertTrue((place / "code").exists(), boot)
            self.assertEqual((place / "code").read_text(), "0\n", log.read_text())
            self.assertTrue(log.read_text().endswith("all of it\n"), log.read_text())
