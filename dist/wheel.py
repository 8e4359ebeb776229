#!/usr/bin/env python3
"""A wheel with the licences of what is in it: wheel.py WHEEL FOLDER DOCUMENT.. writes the one that goes out into FOLDER."""

import base64
import hashlib
import os
import pathlib
import sys
import time
import zipfile


def entry_of(name, when):
    """An entry of a zip with a mode that all may read and the same time as all others."""
    entry = zipfile.ZipInfo(name, date_time=when)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    return entry


def record_line(name, data):
    """The line that RECORD has of a file."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def main():
    wheel, folder, *documents = map(pathlib.Path, sys.argv[1:])
    # What a zip can say begins in 1980.
    when = time.gmtime(max(int(os.environ["SOURCE_DATE_EPOCH"]), 315532800))[:6]
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(folder / wheel.name, "w") as new:
        record = next(name for name in old.namelist() if name.endswith(".dist-info/RECORD"))
        lines = old.read(record).decode()
        for entry in old.infolist():
            if entry.filename != record:
                # As small as it gets: it is most of what is downloaded.
                new.writestr(entry, old.read(entry), compresslevel=9)
        for document in documents:
            name = f"{os.path.dirname(record)}/licenses/{document.name}"
            data = document.read_bytes()
            # maturin may have put the licence there itself.
            if name not in old.namelist():
                new.writestr(entry_of(name, when), data)
                lines = record_line(name, data) + lines
        new.writestr(entry_of(record, when), lines)


if __name__ == "__main__":
    main()
