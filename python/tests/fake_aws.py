"""A bucket of S3, and who hands credentials for it out: STS, the portal of IAM Identity Center, an instance's metadata, a container's agent.

Each credential is one of a number of its own and good for a short time; requests to the bucket are let in by their signature, while the
credential that made it is good. What is asked is counted.
"""

from __future__ import annotations

import hashlib
import hmac
import http.server
import json
import ssl
import threading
import time
from collections import Counter
from datetime import datetime, timezone
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from xml.sax.saxutils import escape

BUCKET = "data"


class FakeAws:
    """Serves until it is closed; `life` is how many seconds a credential is good for."""

    def __init__(self, life: float, tls: tuple[str, str] | None = None) -> None:
        self.life = life
        self.objects: dict[str, bytes] = {}
        #: Secret, session token and end of each access key.
        self.keys: dict[str, tuple[str, str | None, float]] = {}
        #: Who hands out nothing from now on: `sts`, `portal`, `metadata`, `agent`.
        self.refuses: set[str] = set()
        #: By whom the bucket was read, each once and in order, and requests to it and bytes that it sent.
        self.readers: list[str] = []
        self.counted: Counter[str] = Counter()
        #: What web identities and agents must show.
        self.shown = "a token of the platform"
        self._lock = threading.Lock()
        self._servers = [self._serve(None)]
        self.url = f"http://127.0.0.1:{self._servers[0].server_port}"
        if tls:
            self._servers.append(self._serve(tls))
            self.https = f"https://localhost:{self._servers[1].server_port}"

    def _serve(self, tls: tuple[str, str] | None) -> http.server.ThreadingHTTPServer:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Serving", (_Serving,), {"aws": self}))
        server.daemon_threads = True
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server

    def close(self) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def key(self, kind: str, *, life: float | None = None, has_token: bool = True) -> dict[str, str]:
        """A new credential."""
        with self._lock:
            number = len(self.keys)
            # As long as AWS's are: who takes a role by one looks at that.
            key, until = f"ASIA{kind.upper()}{number:012}", time.time() + (self.life if life is None else life)
            secret, token = f"secret/{number}+x", f"session{number}" if has_token else None
            self.keys[key] = (secret, token, until)
        expiration = datetime.fromtimestamp(until, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return {"AccessKeyId": key, "SecretAccessKey": secret, "Token": token or "", "Expiration": expiration}

    def note(self, reader: str, sent: int, method: str) -> None:
        with self._lock:
            if reader not in self.readers:
                self.readers.append(reader)
            self.counted.update({"requests": 1, method: 1, "bytes": sent})


class _Serving(http.server.BaseHTTPRequestHandler):
    aws: FakeAws
    protocol_version = "HTTP/1.1"
    #: Head and body of an answer are not two packets.
    wbufsize = -1

    def log_message(self, *_: object) -> None:
        pass

    def _handle(self) -> None:
        # A client that takes this for its proxy names the whole URL.
        target = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        query = dict(parse_qsl(target.query, keep_blank_values=True))
        asked = query | (dict(parse_qsl(body.decode())) if body and self.command == "POST" else {})
        if "Action" in asked:
            self._sts(asked)
        elif target.path == "/federation/credentials":
            self._portal()
        elif target.path.startswith("/latest/"):
            self._metadata(target.path)
        elif target.path.startswith("/agent"):
            self._agent(target.netloc)
        else:
            self._bucket(target, query)

    do_GET = do_HEAD = do_PUT = do_POST = _handle

    def _answer(self, status: int, body: bytes | str, **headers: str) -> None:
        body = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        self.wfile.flush()

    def _refused(self, status: int, code: str) -> None:
        self._answer(status, f"<Error><Code>{code}</Code><Message>{code}</Message></Error>", content_type="application/xml")

    def _signer(self) -> str:
        return self.headers.get("authorization", "").partition("Credential=")[2].partition("/")[0]

    def _sts(self, asked: dict[str, str]) -> None:
        by_token = asked["Action"] == "AssumeRoleWithWebIdentity"
        is_known = asked.get("WebIdentityToken") == self.aws.shown if by_token else self._signer() in self.aws.keys
        if "sts" in self.aws.refuses or not is_known:
            return self._refused(403, "AccessDenied")
        key = self.aws.key("web" if by_token else "role")
        name = asked["Action"]
        self._answer(
            200,
            f"<{name}Response><{name}Result><Credentials><AccessKeyId>{key['AccessKeyId']}</AccessKeyId>"
            f"<SecretAccessKey>{key['SecretAccessKey']}</SecretAccessKey><SessionToken>{key['Token']}</SessionToken>"
            f"<Expiration>{key['Expiration']}</Expiration></Credentials></{name}Result></{name}Response>",
        )

    def _portal(self) -> None:
        if "portal" in self.aws.refuses or self.headers.get("x-amz-sso_bearer_token") != self.aws.shown:
            return self._refused(401, "UnauthorizedException")
        key = self.aws.key("sso")
        until = int(self.aws.keys[key["AccessKeyId"]][2] * 1000)
        role = {"accessKeyId": key["AccessKeyId"], "secretAccessKey": key["SecretAccessKey"], "sessionToken": key["Token"]}
        self._answer(200, json.dumps({"roleCredentials": {**role, "expiration": until}}))

    def _metadata(self, path: str) -> None:
        """IMDSv2: a session is begun first, and shown."""
        session = "a session of the metadata"
        if "metadata" in self.aws.refuses:
            return self._refused(403, "Forbidden")
        if path == "/latest/api/token" and self.command == "PUT":
            return self._answer(200, session)
        if self.headers.get("x-aws-ec2-metadata-token") != session:
            return self._refused(401, "Unauthorized")
        role = path.removeprefix("/latest/meta-data/iam/security-credentials/")
        self._answer(200, json.dumps(self.aws.key("host")) if role else "reader")

    def _agent(self, host: str) -> None:
        """ECS's is asked at its own address, by a proxy here; EKS's is shown a token."""
        shown = host == "169.254.170.2" or self.headers.get("authorization") == self.aws.shown
        if "agent" in self.aws.refuses or not shown:
            return self._refused(403, "Forbidden")
        self._answer(200, json.dumps(self.aws.key("task")))

    def _bucket(self, target, query: dict[str, str]) -> None:
        refusal = self._refusal(target)
        if refusal:
            return self._refused(403, refusal)
        status, body, headers = self._object(unquote(target.path).removeprefix(f"/{BUCKET}").removeprefix("/"), query)
        # Before it is sent: who was answered may look at what is counted.
        self.aws.note(self._signer(), 0 if self.command == "HEAD" else len(body), self.command)
        self._answer(status, body, **headers)

    def _object(self, name: str, query: dict[str, str]) -> tuple[int, bytes, dict[str, str]]:
        if not name:
            return 200, self._listing(query).encode(), {"content_type": "application/xml"}
        data = self.aws.objects.get(name)
        if data is None:
            return 404, b"<Error><Code>NoSuchKey</Code></Error>", {}
        tag = f'"{hashlib.md5(data).hexdigest()}"'
        headers = {"etag": tag, "last_modified": "Thu, 01 Jan 2026 00:00:00 GMT", "accept_ranges": "bytes"}
        if self.headers.get("if-match", tag) != tag:
            return 412, b"<Error><Code>PreconditionFailed</Code></Error>", {}
        asked = self.headers.get("range", "").removeprefix("bytes=")
        if not asked:
            return 200, data, headers
        first, _, last = asked.partition("-")
        start = int(first) if first else max(0, len(data) - int(last))
        end = min(int(last) + 1, len(data)) if first and last else len(data)
        if start >= len(data):
            return 416, b"<Error><Code>InvalidRange</Code></Error>", {}
        return 206, data[start:end], headers | {"content_range": f"bytes {start}-{end - 1}/{len(data)}"}

    def _listing(self, query: dict[str, str]) -> str:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        contents, prefixes = [], set()
        for name, data in sorted(self.aws.objects.items()):
            if not name.startswith(prefix) or name <= query.get("start-after", ""):
                continue
            if delimiter and delimiter in name[len(prefix) :]:
                prefixes.add(prefix + name[len(prefix) :].partition(delimiter)[0] + delimiter)
                continue
            tag = hashlib.md5(data).hexdigest()
            contents.append(
                f"<Contents><Key>{escape(name)}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
                f"<ETag>&quot;{tag}&quot;</ETag><Size>{len(data)}</Size></Contents>"
            )
        folders = "".join(f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>" for name in sorted(prefixes))
        return f"<ListBucketResult><Name>{BUCKET}</Name><IsTruncated>false</IsTruncated>{''.join(contents)}{folders}</ListBucketResult>"

    def _refusal(self, target) -> str | None:
        """The code of what is wrong with a request's signature (Signature Version 4), if anything is."""
        kept = self.aws.keys.get(self._signer())
        if kept is None:
            return "InvalidAccessKeyId"
        secret, token, until = kept
        if (self.headers.get("x-amz-security-token") or None) != token:
            return "InvalidToken"
        if time.time() > until:
            return "ExpiredToken"
        parts = dict(part.strip().split("=", 1) for part in self.headers["authorization"].removeprefix("AWS4-HMAC-SHA256 ").split(","))
        _, day, region, service, _ = parts["Credential"].split("/")
        names = parts["SignedHeaders"].split(";")
        pairs = sorted((quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in parse_qsl(target.query, keep_blank_values=True))
        canonical = "\n".join(
            [
                self.command,
                target.path,
                "&".join(f"{name}={value}" for name, value in pairs),
                *(f"{name}:{' '.join(self.headers[name].split())}" for name in names),
                "",
                parts["SignedHeaders"],
                self.headers["x-amz-content-sha256"],
            ]
        )
        scope = f"{day}/{region}/{service}/aws4_request"
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        text = f"AWS4-HMAC-SHA256\n{self.headers['x-amz-date']}\n{scope}\n{digest}"
        key = f"AWS4{secret}".encode()
        for part in (day, region, service, "aws4_request"):
            key = hmac.digest(key, part.encode(), "sha256")
        is_right = hmac.compare_digest(hmac.digest(key, text.encode(), "sha256").hex(), parts["Signature"])
        return None if is_right else "SignatureDoesNotMatch"
