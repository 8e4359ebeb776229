"""Credentials of S3 of every kind, handed out by servers of the test's own: a worker of the built binary reads by them, and on when they have run out."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_aws import BUCKET, FakeAws
from test_flight_sql import Up

import forebay

#: Seconds that a credential is good for.
LIFE = 1.5
OBJECTS = ("before", "after", "refused")
ROLE = "arn:aws:iam::123456789012:role/reader"


@pytest.fixture
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No credentials of this machine, for the cluster or its clients."""
    for name in list(os.environ):
        if name.startswith("AWS_") or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    # Clients ask no metadata of the machine that the tests run on.
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    return monkeypatch


@pytest.fixture
def aws() -> Iterator[FakeAws]:
    aws = FakeAws(LIFE)
    yield aws
    aws.close()


def fill(aws: FakeAws, mount: str) -> None:
    for name in OBJECTS:
        aws.objects[f"{mount}/{name}"] = f"{mount} {name}".encode() * 100


def mount(fb: forebay.Client, aws: FakeAws, name: str, **options: str) -> None:
    fill(aws, name)
    fb.mounts.add(name, f"s3://{BUCKET}/{name}", endpoint=aws.url, validate="always", **options)


def reads(fb: forebay.Client, aws: FakeAws, mount: str, name: str) -> None:
    assert fb.read(f"/{mount}/{name}") == aws.objects[f"{mount}/{name}"]


def run_out() -> None:
    time.sleep(LIFE + 0.2)


def test_profiles(clean, aws, tmp_path):
    keys = aws.key("keys", life=3600, has_token=False)
    command = tmp_path / "command"
    # The one that stands there, which may have run out: who runs it must look at when it ends.
    command.write_text(f"#!/bin/sh\nexec cat {tmp_path}/printed\n")
    command.chmod(0o755)
    profiles = {
        "keys": f"aws_access_key_id = {keys['AccessKeyId']}\naws_secret_access_key = {keys['SecretAccessKey']}",
        "role": f"role_arn = {ROLE}\nsource_profile = keys",
        "chained": f"role_arn = {ROLE}2\nsource_profile = role",
        "hosted": f"role_arn = {ROLE}3\ncredential_source = Ec2InstanceMetadata",
        "process": f"credential_process = {command}",
        "sso": "sso_session = corp\nsso_account_id = 123456789012\nsso_role_name = Analyst",
    }
    home = tmp_path / ".aws"
    (home / "sso/cache").mkdir(parents=True)
    session = "[sso-session corp]\nsso_region = eu-west-1\nsso_start_url = https://corp.example/start\n"
    (home / "config").write_text(session + "".join(f"[profile {name}]\n{text}\n" for name, text in profiles.items()))
    login = {"accessToken": aws.shown, "expiresAt": "2999-01-01T00:00:00Z"}
    (home / f"sso/cache/{hashlib.sha1(b'corp').hexdigest()}.json").write_text(json.dumps(login))

    def print_one() -> None:
        printed = aws.key("process")
        named = {"AccessKeyId": "AccessKeyId", "SecretAccessKey": "SecretAccessKey", "SessionToken": "Token", "Expiration": "Expiration"}
        (tmp_path / "printed").write_text(json.dumps({"Version": 1} | {name: printed[of] for name, of in named.items()}))

    clean.setenv("AWS_ENDPOINT_URL_STS", aws.url)
    clean.setenv("AWS_ENDPOINT_URL_SSO", aws.url)
    clean.setenv("AWS_METADATA_ENDPOINT", aws.url)
    up = Up(tmp_path)
    clean.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:1")
    try:
        with forebay.connect(up.told["coordinator"], in_place=False) as fb:
            for name in profiles:
                # One that is printed is good for as long as any other: not from before the others were read by.
                print_one()
                mount(fb, aws, name, profile=name)
                reads(fb, aws, name, "before")
            before = set(aws.readers)
            run_out()
            for name in profiles:
                print_one()
                reads(fb, aws, name, "after")
            # Each kind has read by another one since, but for keys that do not end.
            kinds = [key[:8] for key in set(aws.readers) - before]
            assert {kind.rstrip("0123456789") for kind in kinds} == {"ASIAROLE", "ASIAPROC", "ASIASSO"}, aws.readers
            assert kinds.count("ASIAROLE") >= 3, aws.readers

            aws.refuses |= {"sts", "portal"}
            (tmp_path / "printed").write_text("no credentials")
            run_out()
            reads(fb, aws, "keys", "refused")
            links = {"role": [ROLE, "STS", "AccessDenied"], "process": ["credential_process"], "sso": ["aws sso login"]}
            links |= {"chained": [ROLE, "STS"], "hosted": [f"{ROLE}3", "STS"]}
            for name, words in links.items():
                refused = said(fb, name)
                assert all(word in refused for word in [f'"{name}"', f"/{name}/", *words]), refused
                assert aws.shown not in refused and "secret/" not in refused, refused
    finally:
        up.stop()


def said(fb: forebay.Client, mount: str) -> str:
    """The error of reading when nobody hands out anything."""
    with pytest.raises(forebay.Denied) as caught:
        fb.read(f"/{mount}/refused")
    return str(caught.value)


def certificate(folder: Path) -> tuple[str, str]:
    """One of `localhost` that is its own authority, and its key."""
    made = (str(folder / "certificate.pem"), str(folder / "key.pem"))
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE"]
    subprocess.run([*command, "-out", made[0], "-keyout", made[1]], check=True, capture_output=True)
    return made


@pytest.mark.parametrize(
    ("kind", "link", "words"),
    [
        ("env", None, []),
        ("web", "sts", ["web identity", "AWS_WEB_IDENTITY_TOKEN_FILE", ROLE]),
        ("ecs", "agent", ["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"]),
        ("eks", "agent", ["AWS_CONTAINER_CREDENTIALS_FULL_URI"]),
        ("instance", "metadata", ["the instance's metadata"]),
    ],
)
def test_the_environment_and_the_machine(clean, tmp_path, kind, link, words):
    tls = certificate(tmp_path) if kind == "web" else None
    aws = FakeAws(LIFE, tls)
    shown = tmp_path / "shown"
    shown.write_text(aws.shown)
    keys = aws.key("env", life=3600)
    of_kind = {
        "env": {"AWS_ACCESS_KEY_ID": keys["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": keys["SecretAccessKey"], "AWS_SESSION_TOKEN": keys["Token"]},
        "web": {"AWS_WEB_IDENTITY_TOKEN_FILE": str(shown), "AWS_ROLE_ARN": ROLE},
        # Its address is a fixed one, so that a proxy stands in for it.
        "ecs": {"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/agent/of-ecs", "http_proxy": aws.url},
        "eks": {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{aws.url}/agent", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(shown)},
        "instance": {"AWS_METADATA_ENDPOINT": aws.url},
    }[kind]
    if tls:
        of_kind |= {"AWS_ENDPOINT_URL_STS": aws.https, "SSL_CERT_FILE": tls[0]}
    with clean.context() as worker:
        for name, value in of_kind.items():
            worker.setenv(name, value)
        up = Up(tmp_path)
    try:
        with forebay.connect(up.told["coordinator"], in_place=False) as fb:
            mount(fb, aws, "lake")
            reads(fb, aws, "lake", "before")
            before = set(aws.readers)
            run_out()
            reads(fb, aws, "lake", "after")
            after = set(aws.readers) - before
            assert bool(after) == (link is not None), f"by {after} since, and {before}"
            if link:
                aws.refuses.add(link)
                run_out()
                refused = said(fb, "lake")
                assert all(word in refused for word in words), refused
                assert aws.shown not in refused and "secret/" not in refused, refused
    finally:
        up.stop()
        aws.close()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("gs://bucket/x", ["Google Cloud Storage", "GOOGLE_APPLICATION_CREDENTIALS"]),
        ("az://container/x", ["Azure Blob Storage", "AZURE_STORAGE_ACCOUNT_NAME", "AZURE_CLIENT_ID"]),
    ],
)
def test_what_other_clouds_lack_is_named(clean, tmp_path, url, words):
    """A file of credentials that is not there, and no account."""
    with clean.context() as worker:
        worker.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
        up = Up(tmp_path)
    try:
        with forebay.connect(up.told["coordinator"]) as fb, pytest.raises(forebay.Error) as caught:
            fb.mounts.add("cloud", url)
        assert all(word in str(caught.value) for word in words), caught.value
    finally:
        up.stop()
