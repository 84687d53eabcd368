"""Databases that the tests run themselves: in the process, or servers on a socket of their own.

Servers are started when they are first asked for, as another user where we are root (PostgreSQL
refuses root), in a folder of their own, without a network port, and end with the tests. They are
talked to by their own clients, so that no driver is needed.
"""

import atexit
import functools
import glob
import os
import shutil
import sqlite3
import subprocess
import tempfile
import time

import duckdb
import numpy as np
import pyarrow as pa
import pytest

_PATIENCE = 60  # seconds until a server answers


def _quoted(name, quote):
    return quote + name.replace(quote, 2 * quote) + quote


class SQLite:
    """In the process, in memory."""

    dialect, quote, n_columns = "ansi", '"', 1500
    error = sqlite3.OperationalError

    def table(self, X, names):
        """A function that queries a table ``documents`` of the rows, NULL where one lacks a value.

        It has the columns ``docid``, the number of the row, ``qid``, its remainder by 50, and the
        features.
        """
        connection = sqlite3.connect(":memory:")
        columns = ", ".join(f"{_quoted(name, self.quote)} REAL" for name in names)
        connection.execute(f"CREATE TABLE documents (docid INTEGER PRIMARY KEY, qid, {columns})")
        marks = ", ".join("?" * (len(names) + 2))
        connection.executemany(f"INSERT INTO documents VALUES ({marks})", _listed(X))
        return lambda query: connection.execute(query).fetchall()


class DuckDB:
    """In the process, in memory."""

    dialect, quote, n_columns = "ansi", '"', 1500
    error = duckdb.Error

    def table(self, X, names):
        """As that of SQLite."""
        connection = duckdb.connect()
        columns = {"docid": np.arange(len(X)), "qid": np.arange(len(X)) % 50}
        columns |= {n: pa.array(x, mask=np.isnan(x)) for n, x in zip(names, X.T, strict=True)}
        connection.register("documents", pa.table(columns))
        return lambda query: connection.execute(query).fetchall()


def _listed(X):
    rows = np.where(np.isnan(X), None, X).tolist()
    return ([i, i % 50, *row] for i, row in enumerate(rows))


class ServerError(Exception):
    """What the client of a server says."""


class _Server:
    """A server in a folder of its own."""

    error = ServerError

    @functools.cached_property
    def folder(self):
        """The folder of the running server; skips the test where the server is not installed."""
        programs = [self._program(name) for name in self.programs]
        if None in programs:
            pytest.skip(f"needs {', '.join(self.programs)}")
        folder = tempfile.mkdtemp(prefix="linrank-", dir="/tmp")  # a socket has a short name
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        if os.geteuid() == 0:
            shutil.chown(folder, "nobody")
        install, serve = self._commands(folder)
        command, as_user = [programs[0], *install], self._as_user(folder)
        subprocess.run(command, check=True, capture_output=True, **as_user)
        self._serve(folder, [programs[1], *serve])
        return folder

    def _program(self, name):
        """The path of a program; Debian has those of servers outside the usual ones."""
        folders = [*os.environ["PATH"].split(os.pathsep), "/usr/sbin"]
        folders += sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)
        return shutil.which(name, path=os.pathsep.join(folders))

    def _as_user(self, folder):
        user = {"user": "nobody", "group": "nogroup", "extra_groups": []}
        return {"cwd": folder, **(user if os.geteuid() == 0 else {})}

    def _serve(self, folder, command):
        with open(f"{folder}/log", "wb") as log:
            server = subprocess.Popen(command, stdout=log, stderr=log, **self._as_user(folder))
        atexit.register(_end, server)
        end = time.monotonic() + _PATIENCE
        while self._ask(folder, "SELECT 1", check=False).returncode != 0:
            if server.poll() is not None or time.monotonic() > end:
                with open(f"{folder}/log", errors="replace") as log:
                    raise RuntimeError(f"{command[0]} does not answer: {log.read()[-2000:]}")
            time.sleep(0.1)

    def _ask(self, folder, query, check=True):
        done = subprocess.run(
            self._client(folder), input=query.encode(), capture_output=True, timeout=600
        )
        if check and done.returncode != 0:
            raise ServerError(done.stderr.decode(errors="replace"))
        return done

    def table(self, X, names):
        """As that of SQLite."""
        folder = self.folder
        with tempfile.NamedTemporaryFile("w", dir=folder, suffix=".txt") as file:
            for row in _listed(X):
                file.write("\t".join("\\N" if v is None else repr(v) for v in row) + "\n")
            file.flush()
            columns = ", ".join(f"{_quoted(n, self.quote)} DOUBLE PRECISION" for n in names)
            create = f"CREATE TABLE documents (docid INTEGER, qid INTEGER, {columns})"
            self._ask(
                folder,
                f"DROP TABLE IF EXISTS documents;\n{create}{self.storage};\n"
                + self._load(file.name),
            )

        def ask(query):
            answer = self._ask(folder, query.rstrip() + ";\n").stdout.decode()
            return [tuple(map(_value, line.split("\t"))) for line in answer.splitlines()]

        return ask


def _end(server):
    server.terminate()
    server.wait(timeout=_PATIENCE)


def _value(text):
    if text in ("NULL", ""):
        return None
    try:
        return int(text)
    except ValueError:
        return float(text)


class PostgreSQL(_Server):
    """PostgreSQL on a socket."""

    dialect, quote, storage = "ansi", '"', ""
    n_columns = 900  # of doubles, that a page has room for
    programs = ("initdb", "postgres", "psql")

    def _commands(self, folder):
        options = ["--username=linrank", "--auth=trust", "--encoding=UTF8", "--locale=C"]
        settings = ["-c", "listen_addresses=", "-c", "fsync=off", "-k", folder]
        data = ["-D", f"{folder}/data"]
        return [*data, "--no-sync", *options], [*data, *settings]

    def _client(self, folder):
        quiet = ["-X", "-q", "-A", "-t", "-F", "\t", "-v", "ON_ERROR_STOP=1"]
        return [self._program("psql"), "-h", folder, "-U", "linrank", "-d", "postgres", *quiet]

    def _load(self, path):
        return f"\\copy documents FROM '{path}'\n"


_UTF8 = ["--default-character-set=utf8mb4"]


class MariaDB(_Server):
    """MariaDB on a socket."""

    dialect, quote = "mysql", "`"
    # A page of the usual storage has room for a thousand doubles.
    storage, n_columns = " ENGINE=Aria", 1500
    programs = ("mariadb-install-db", "mariadbd", "mariadb")

    def _commands(self, folder):
        common = ["--no-defaults", f"--datadir={folder}/data"]
        settings = ["--skip-networking", "--skip-grant-tables", f"--socket={folder}/socket"]
        settings += ["--character-set-server=utf8mb4", "--local-infile=1"]
        settings += ["--innodb-buffer-pool-size=16M", "--innodb-flush-log-at-trx-commit=0"]
        return common, [*common, *settings, f"--pid-file={folder}/pid"]

    def _client(self, folder):
        quiet = ["--batch", "--raw", "--skip-column-names", "--binary-mode", "--local-infile=1"]
        where = [f"--socket={folder}/socket", "--database=test"]
        return [self._program("mariadb"), "--no-defaults", *where, *quiet, *_UTF8]

    def _load(self, path):
        return f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE documents;\n"


DATABASES = {d.__name__.lower(): d() for d in (SQLite, DuckDB, PostgreSQL, MariaDB)}
