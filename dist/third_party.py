#!/usr/bin/env python3
"""What others wrote and Forebay ships: each crate with its version and licence, then the texts of their licences, each text once."""

import json
import os
import pathlib
import re
import subprocess
import sys

# What people install is built from these.
SHIPPED = ("forebay", "forebay-python")
TEXTS = re.compile(r"(licen[cs]e|copying|notice|copyright|unlicense)", re.IGNORECASE)


def metadata():
    """Cargo's own account of the lock file, for the machine that this runs on. Asks no registry."""
    cargo = os.environ.get("CARGO", "cargo")
    command = [cargo, "metadata", "--locked", "--offline", "--format-version", "1", "--filter-platform", host()]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def host():
    told = subprocess.run(["rustc", "-vV"], check=True, stdout=subprocess.PIPE, text=True).stdout
    return re.search(r"^host: (.*)$", told, re.MULTILINE)[1]


def shipped(told):
    """The packages of other authors that are linked in, or that run to make what is: all but what only tests need."""
    packages = {package["id"]: package for package in told["packages"]}
    needs = {node["id"]: node["deps"] for node in told["resolve"]["nodes"]}
    found, waiting = set(), [id for id, package in packages.items() if package["name"] in SHIPPED and not package["source"]]
    while waiting:
        id = waiting.pop()
        if id in found:
            continue
        found.add(id)
        waiting += [dep["pkg"] for dep in needs[id] if any(kind["kind"] != "dev" for kind in dep["dep_kinds"])]
    others = [packages[id] for id in found if packages[id]["source"]]
    return sorted(others, key=lambda package: (package["name"], package["version"]))


def texts_of(package):
    """The texts of licences and notices in a crate's folder and in the folders of C sources below it."""
    folder = pathlib.Path(package["manifest_path"]).parent
    files = [file for file in folder.rglob("*") if file.is_file() and TEXTS.match(file.name) and file.suffix not in (".rs", ".toml", ".json")]
    return [file.read_text(errors="replace").strip() for file in sorted(files)]


def main():
    packages = shipped(metadata())
    unnamed = [package["name"] for package in packages if not (package["license"] or package["license_file"])]
    if unnamed:
        sys.exit(f"no licence is named by {', '.join(unnamed)}")
    print(f"Forebay is under the Apache License 2.0 (LICENSE). It contains Rust's standard library (MIT OR Apache-2.0)")
    print(f"and {len(packages)} crates of other authors:\n")
    users = {}
    for package in packages:
        print(f"{package['name']} {package['version']}: {package['license'] or 'see its text below'}")
        for text in texts_of(package):
            users.setdefault(text, []).append(f"{package['name']} {package['version']}")
    for text, names in sorted(users.items(), key=lambda one: one[1]):
        print(f"\n{'=' * 100}\n{', '.join(dict.fromkeys(names))}\n{'-' * 100}\n{text}")


if __name__ == "__main__":
    main()
