"""Flight SQL of the built binary, with the ADBC driver, and the same statements as Arrow over HTTP."""

from __future__ import annotations

import http.client
import os
import re
import ssl
import subprocess
import time
import urllib.request
from pathlib import Path

import adbc_driver_flightsql.dbapi as flight_sql
import adbc_driver_manager
import pyarrow
import pytest
from adbc_driver_flightsql import DatabaseOptions

import forebay

BINARY = Path(os.environ.get("FOREBAY_TEST_BINARY") or Path(__file__).parents[2] / "target/fast/forebay")
TOKEN = "a token of the tests"


class Up:
    """`forebay up` on free ports."""

    def __init__(self, folder: Path, *flags: str, token: str | None = None) -> None:
        assert BINARY.exists(), f"{BINARY}: build it with cargo build --profile fast -p forebay, or name it in FOREBAY_TEST_BINARY"
        ports = [f"--{name}=127.0.0.1:0" for name in ("coordinator-listen", "worker-listen", "http", "flight")]
        environment = dict(os.environ, HOME=str(folder)) | ({"FOREBAY_TOKEN": token} if token else {})
        self.folder, self.log = folder, folder / "log"
        self.process = subprocess.Popen(
            [str(BINARY), "up", *ports, "--dram=64MiB", "--disk=0", *flags],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=self.log.open("w"),
            text=True,
        )
        self.told: dict[str, str] = {}
        assert self.process.stdout
        for line in self.process.stdout:
            words = line.split()
            if len(words) == 2:
                self.told[words[0]] = words[1]
            if not words:
                break
        assert "flight-sql" in self.told, self.told
        # What its own user shows where the kernel has no word for that one.
        self.secret = (folder / "forebay-data" / "owner.secret").read_text().strip()

    def connect(self) -> flight_sql.Connection:
        options = {DatabaseOptions.AUTHORIZATION_HEADER.value: f"Bearer {self.secret}"}
        return flight_sql.connect(f"grpc://{self.told['flight-sql']}", db_kwargs=options)

    def stop(self) -> None:
        self.process.terminate()
        assert self.process.wait(30) == 0


@pytest.fixture(scope="module")
def up(tmp_path_factory, sales, lake):
    up = Up(tmp_path_factory.mktemp("flight"))
    with forebay.connect(up.told["coordinator"]) as fb:
        fb.mounts.add("lake", lake, validate="always")
    yield up
    up.stop()


@pytest.fixture
def cursor(up):
    with up.connect() as connection, connection.cursor() as cursor:
        yield cursor


def test_rows(cursor, sales):
    cursor.execute("select * from '/lake/sales/' order by n")
    table = cursor.fetch_arrow_table()
    assert table.to_pylist() == sales.to_pylist() and table.schema.field("word").type == pyarrow.string()
    cursor.execute("select count(*), max(word) from '/lake/sales/part-1.parquet'")
    assert cursor.fetchall() == [(1000, "word-6")]


def test_parameters_and_running_again(cursor, sales):
    statement = "select count(*) from '/lake/sales/' where n < $1 and word = $2"
    for limit, expected in [(70, 10), (700, 100)]:
        cursor.execute(statement, [limit, "word-3"])
        assert cursor.fetchone() == (expected,)


def test_updates_and_what_there_is(cursor, up, lake, sales):
    cursor.execute("create external table listed stored as parquet location '/lake/sales/'")
    cursor.execute("select count(*) from listed")
    assert cursor.fetchone() == (3000,)
    # COPY is an update: it is run once, and says how many rows it wrote.
    assert cursor.adbc_statement.set_sql_query("copy (select n from listed) to '/lake/flight/n.parquet'") is None
    assert cursor.adbc_statement.execute_update() == 3000
    assert (lake / "flight" / "n.parquet").exists()
    # As a query it has written as well, though nobody fetches what it says.
    cursor.execute("copy (select n from listed where n < $1) to '/lake/flight/few.parquet'", [10])
    cursor.execute("select count(*) from '/lake/flight/few.parquet'")
    assert cursor.fetchone() == (10,)
    cursor.execute("copy (select 1) to '/lake/flight/one.parquet'")
    assert cursor.fetchall() == [(1,)]
    connection = cursor.connection
    info = connection.adbc_get_info()
    assert info["vendor_name"] == "Forebay"
    assert connection.adbc_get_table_types() == ["BASE TABLE", "VIEW"]
    objects = connection.adbc_get_objects(depth="all").read_all().to_pylist()
    [catalog] = objects
    [schema] = catalog["catalog_db_schemas"]
    [table] = schema["db_schema_tables"]
    assert (catalog["catalog_name"], schema["db_schema_name"], table["table_name"]) == ("forebay", "public", "listed")
    assert [column["column_name"] for column in table["table_columns"]] == ["n", "square", "word"]
    assert connection.adbc_get_table_schema("listed").names == ["n", "square", "word"]
    cursor.execute("drop table listed")
    assert connection.adbc_get_objects(depth="tables").read_all().to_pylist()[0]["catalog_db_schemas"][0]["db_schema_tables"] == []


def test_errors_have_their_kind_and_their_path(cursor):
    with pytest.raises(adbc_driver_manager.ProgrammingError, match="/lake/not/there") as caught:
        cursor.execute("select * from '/lake/not/there.parquet'")
    assert caught.value.status_code == adbc_driver_manager.AdbcStatusCode.NOT_FOUND
    with pytest.raises(adbc_driver_manager.ProgrammingError) as caught:
        cursor.execute("selec 1")
    assert caught.value.status_code == adbc_driver_manager.AdbcStatusCode.INVALID_ARGUMENT


def test_jdbc(up, sales):
    """With the driver from Maven Central, which `.ci/test-deps` fetches."""
    cache = Path(os.environ.get("FOREBAY_CACHE") or Path.home() / ".cache/forebay")
    [driver] = cache.glob("jdbc/flight-sql-jdbc-driver-*.jar")
    url = f"jdbc:arrow-flight-sql://{up.told['flight-sql']}/?useEncryption=false&token={up.secret}"
    command = [str(cache / "s3-clients/bin/python"), str(Path(__file__).parent / "jdbc_client.py"), str(driver), url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout.endswith("done\n"), done.stdout + done.stderr


def test_a_reader_that_goes_away_ends_its_query(up):
    started = time.monotonic()
    with up.connect() as connection, connection.cursor() as cursor:
        cursor.execute("select a.value from generate_series(1, 1000000000) a")
        reader = cursor.fetch_record_batch()
        assert reader.read_next_batch().num_rows > 0
    assert time.monotonic() - started < 30
    with up.connect() as connection, connection.cursor() as cursor:
        cursor.execute("select 1")
        assert cursor.fetchone() == (1,)


def test_nobody_is_let_in_who_shows_nothing(up):
    uri = f"grpc://{up.told['flight-sql']}"
    for options in ({}, {"username": "anyone", "password": "a guess of somebody"}):
        with pytest.raises(adbc_driver_manager.Error, match="token"):
            with flight_sql.connect(uri, db_kwargs=options) as connection, connection.cursor() as cursor:
                cursor.execute("select 1")


def test_a_token_reads_its_mounts_and_writes_nothing(up, lake, sales):
    def forebay_token(*arguments: str) -> str:
        command = [str(BINARY), "token", *arguments, "--coordinator", up.told["coordinator"]]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    options = {DatabaseOptions.AUTHORIZATION_HEADER.value: f"Bearer {forebay_token('add', 'reader', '--read', '--mount', 'lake')}"}
    with flight_sql.connect(f"grpc://{up.told['flight-sql']}", db_kwargs=options) as connection, connection.cursor() as cursor:
        cursor.execute("select count(*) from '/lake/sales/'")
        assert cursor.fetchone() == (3000,)
        with pytest.raises(adbc_driver_manager.Error, match="may not write"):
            cursor.execute("copy (select 1) to '/lake/flight/denied.parquet'")
            cursor.fetchall()
        for local in ("/etc/passwd", str(lake / "sales/part-1.parquet")):
            with pytest.raises(adbc_driver_manager.Error):
                cursor.execute(f"create external table local stored as csv location 'file://{local}'")
                cursor.fetchall()
    assert not (lake / "flight" / "denied.parquet").exists()
    forebay_token("rm", "reader")


def certificates(folder: Path) -> list[str]:
    """An authority, and certificates of it for a server and a client; the flags of a server with them."""
    signed = ["-x509", "-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "basicConstraints=critical,CA:FALSE"]
    for name, arguments in {
        "ca": ["-x509", "-addext", "basicConstraints=critical,CA:TRUE", "-subj", "/CN=authority"],
        "server": [*signed, "-subj", "/CN=server", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
        "client": [*signed, "-subj", "/CN=client"],
    }.items():
        command = ["openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
        command += [*arguments, "-keyout", f"{name}.key", "-out", f"{name}.pem"]
        subprocess.run(command, check=True, capture_output=True, cwd=folder)
    return [f"--tls-{what}={folder / file}" for what, file in (("ca", "ca.pem"), ("cert", "server.pem"), ("key", "server.key"))]


def test_token_and_tls(tmp_path, sales, lake):
    tls = certificates(tmp_path)
    up = Up(tmp_path, *tls, token=TOKEN)
    try:
        uri = f"grpc+tls://{up.told['flight-sql']}"
        roots = {DatabaseOptions.TLS_ROOT_CERTS.value: (tmp_path / "ca.pem").read_text()}

        def one(**options: str) -> int:
            with flight_sql.connect(uri, db_kwargs=roots | options) as connection, connection.cursor() as cursor:
                cursor.execute("select 1")
                return cursor.fetchone()[0]

        assert one(**{DatabaseOptions.AUTHORIZATION_HEADER.value: f"Bearer {TOKEN}"}) == 1
        assert one(username="anyone", password=TOKEN) == 1
        for wrong in ({}, {DatabaseOptions.AUTHORIZATION_HEADER.value: "Bearer other"}, {"username": "anyone", "password": "other"}):
            with pytest.raises(adbc_driver_manager.Error, match="token"):
                one(**wrong)
        # The same token and authority are Python's.
        with forebay.connect(up.told["coordinator"], token=TOKEN, tls_ca=tmp_path / "ca.pem") as fb:
            assert fb.sql("select 1 as one").to_arrow().to_pylist() == [{"one": 1}]
        with pytest.raises(forebay.Denied):
            forebay.connect(up.told["coordinator"], token="another token of nobody", tls_ca=tmp_path / "ca.pem")
    finally:
        up.stop()


def test_a_certificate_that_was_replaced_is_shown_without_a_restart(tmp_path):
    up = Up(tmp_path, *certificates(tmp_path), token=TOKEN)
    try:
        host, port = up.told["flight-sql"].rsplit(":", 1)
        first = ssl.get_server_certificate((host, int(port)))
        assert first == (tmp_path / "server.pem").read_text()
        certificates(tmp_path)
        second, began = (tmp_path / "server.pem").read_text(), time.monotonic()
        while ssl.get_server_certificate((host, int(port))) != second:
            assert time.monotonic() - began < 10, "the old one is shown still"
            time.sleep(0.1)
    finally:
        up.stop()


def test_certificates_of_clients(tmp_path, sales, lake, monkeypatch):
    tls = certificates(tmp_path)
    with monkeypatch.context() as environment:
        environment.setenv("FOREBAY_TLS_CLIENT_CA", str(tmp_path / "ca.pem"))
        up = Up(tmp_path, *tls, token=TOKEN)
    try:
        own = {"tls_cert": tmp_path / "client.pem", "tls_key": tmp_path / "client.key"}
        place = {"address": up.told["coordinator"], "token": TOKEN, "tls_ca": tmp_path / "ca.pem"}
        with forebay.connect(**place, **own) as fb:
            assert fb.sql("select 1 as one").to_arrow().to_pylist() == [{"one": 1}]
        with pytest.raises(forebay.Denied, match="tls-cert"):
            forebay.connect(**place)

        options = {
            DatabaseOptions.TLS_ROOT_CERTS.value: (tmp_path / "ca.pem").read_text(),
            DatabaseOptions.AUTHORIZATION_HEADER.value: f"Bearer {TOKEN}",
        }
        shown = {
            DatabaseOptions.MTLS_CERT_CHAIN.value: (tmp_path / "client.pem").read_text(),
            DatabaseOptions.MTLS_PRIVATE_KEY.value: (tmp_path / "client.key").read_text(),
        }
        uri = f"grpc+tls://{up.told['flight-sql']}"
        with flight_sql.connect(uri, db_kwargs=options | shown) as connection, connection.cursor() as cursor:
            cursor.execute("select 1")
            assert cursor.fetchone() == (1,)
        with pytest.raises(adbc_driver_manager.Error):
            with flight_sql.connect(uri, db_kwargs=options) as connection, connection.cursor() as cursor:
                cursor.execute("select 1")
    finally:
        up.stop()


@pytest.fixture
def no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def test_the_page_has_an_example_of_arrow_over_http_that_works(up, sales, monkeypatch, no_proxy, capsys):
    page = (Path(__file__).parents[2] / "docs/api.md").read_text()
    [block] = re.findall(r"^```python\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)
    statement = "select region, amount from '/lake/orders/' where amount > 250"
    for written, here in [("http://127.0.0.1:7480/", up.told["console"]), (statement, "select word, n from '/lake/sales/' where n >= 250")]:
        assert written in block
        block = block.replace(written, here)
    monkeypatch.setenv("TOKEN", up.secret)
    exec(compile(block, "docs/api.md", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert sum(int(line.split()[0]) for line in lines) == 2750 and all(line.endswith("['word', 'n']") for line in lines)


def as_arrow(up, statement: str) -> http.client.HTTPResponse:
    headers = {"Authorization": f"Bearer {up.secret}", "Accept": "application/vnd.apache.arrow.stream"}
    request = urllib.request.Request(up.told["console"] + "api/v1/sql", data=statement.encode(), headers=headers)
    return urllib.request.urlopen(request, timeout=60)


def test_arrow_over_http_is_what_flight_sql_gives(up, cursor, sales, no_proxy):
    statement = "select n, word, arrow_cast(word, 'Dictionary(Int32, Utf8)') as key from '/lake/sales/' order by n"
    with as_arrow(up, statement) as answer, pyarrow.ipc.open_stream(answer) as rows:
        table = rows.read_all()
    cursor.execute(statement)
    assert table.to_pylist() == cursor.fetch_arrow_table().to_pylist() and table.schema.field("word").type == pyarrow.string()
    with as_arrow(up, "select 1 as one where false") as answer, pyarrow.ipc.open_stream(answer) as rows:
        assert rows.schema.names == ["one"] and rows.read_all().num_rows == 0


def test_arrow_over_http_breaks_off_where_a_statement_fails(up, no_proxy):
    # The last of its rows fails; some of the first have been sent by then.
    statement = "select 1 / (value - 3000000) as x from generate_series(1, 3000000) as t(value)"
    with as_arrow(up, statement) as answer, pytest.raises((http.client.IncompleteRead, OSError)), pyarrow.ipc.open_stream(answer) as rows:
        for _ in rows:
            pass
