"""Flight SQL with Arrow's JDBC driver: `jdbc_client.py DRIVER.jar URL`, with the Java and the Py4J that PySpark brings."""

import pathlib
import sys

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError

driver, url = sys.argv[1:3]
py4j = next(pathlib.Path(pyspark.__file__).parent.glob("jars/py4j-*.jar"))
port = launch_gateway(
    jarpath=str(py4j), classpath=driver, javaopts=["--add-opens=java.base/java.nio=ALL-UNNAMED"], die_on_exit=True
)
jvm = JavaGateway(gateway_parameters=GatewayParameters(port=port)).jvm
jvm.java.lang.Class.forName("org.apache.arrow.driver.jdbc.ArrowFlightJdbcDriver")


def rows(result):
    columns = range(1, result.getMetaData().getColumnCount() + 1)
    found = []
    while result.next():
        found.append(tuple(result.getString(column) for column in columns))
    result.close()
    return found


connection = jvm.java.sql.DriverManager.getConnection(url)
statement = connection.createStatement()
found = rows(statement.executeQuery("select n, square, word from '/lake/sales/' where n between 5 and 6 order by n"))
assert found == [("5", "25", "word-5"), ("6", "36", "word-6")], found
found = rows(statement.executeQuery("select date '2024-02-29', timestamp '2024-02-29 01:02:03', 1.5, true, null"))
assert found[0][0] == "2024-02-29" and found[0][2:] == ("1.5", "true", None), found

prepared = connection.prepareStatement("select count(*), '?' from '/lake/sales/' where n < ? and word = ?")
for limit, expected in [(70, "10"), (700, "100")]:
    prepared.setLong(1, limit)
    prepared.setString(2, "word-3")
    assert rows(prepared.executeQuery()) == [(expected, "?")]
prepared.close()
# Values go by the types that are told in the order of the numbers, of which `$10` is not the second.
prepared = connection.prepareStatement("select count(*) from '/lake/sales/' where n > ? and word = ?" + " and n < ?" * 9)
prepared.setLong(1, 0)
prepared.setString(2, "word-3")
for place in range(3, 12):
    prepared.setLong(place, 700)
assert rows(prepared.executeQuery()) == [("100",)]
prepared.close()
# A cast says the type where nothing else does.
prepared = connection.prepareStatement("select cast(? as bigint) + 1")
prepared.setLong(1, 41)
assert rows(prepared.executeQuery()) == [("42",)]
prepared.close()

# A definition is run once, though it has no rows to count.
assert statement.execute("create external table jdbc_sales stored as parquet location '/lake/sales/'") is False
metadata = connection.getMetaData()
assert metadata.getDatabaseProductName() == "Forebay"
assert [row[2] for row in rows(metadata.getTables(None, None, "jdbc%", None))] == ["jdbc_sales"]
assert [row[3] for row in rows(metadata.getColumns(None, None, "jdbc_sales", "%"))] == ["n", "square", "word"]
# What tools ask before anything else.
assert metadata.supportsUnionAll() and metadata.supportsFullOuterJoins() and metadata.supportsGroupBy()
assert not metadata.supportsTransactions() and not metadata.supportsBatchUpdates()
assert (metadata.getMaxConnections(), metadata.getDefaultTransactionIsolation()) == (0, 0)
table = (None, None, "jdbc_sales")
for keys in (metadata.getPrimaryKeys, metadata.getImportedKeys, metadata.getExportedKeys):
    assert rows(keys(*table)) == []
assert rows(metadata.getCrossReference(*table, *table)) == []
assert statement.executeUpdate("copy (select n from jdbc_sales) to '/lake/jdbc/n.parquet'") == 3000
assert statement.execute("drop table jdbc_sales") is False

try:
    statement.executeQuery("select * from '/lake/not/there.parquet'")
    raise AssertionError("a file that is not there was read")
except Py4JJavaError as error:
    assert "/lake/not/there.parquet" in str(error), error
statement.close()
connection.close()
print("done")
