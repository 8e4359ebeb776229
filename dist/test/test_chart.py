"""The chart: that Kubernetes would take what it gives, that its parts find each other, and that it says what it cannot do."""

import json
import unittest

import kubernetes_validate
import yaml

from chart import CONTROLLERS, HELM, arguments, matches, named, of_kind, pods, ports, refused, rendered
from tools import ROOT, package, told

ALL = ROOT / "dist/test/all-options.yaml"
# The oldest version that Chart.yaml takes, and the newest whose schemas are pinned.
VERSIONS = ("1.25", "1.34")


def references(spec):
    """The secrets that a pod cannot start without."""
    for container in spec["containers"]:
        for variable in container.get("env", []):
            if "secretKeyRef" in variable.get("valueFrom", {}):
                yield variable["valueFrom"]["secretKeyRef"]["name"]
        for source in container.get("envFrom", []):
            yield source["secretRef"]["name"]
    for volume in spec["volumes"]:
        if "secret" in volume:
            yield volume["secret"]["secretName"]


class Chart(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.both = {"default": rendered(), "all": rendered(ALL)}

    def test_helm_has_nothing_against_the_chart(self):
        for values in ([], [ALL]):
            said = told(HELM, "lint", "--strict", *arguments(values), package(".tgz"))
            self.assertIn("1 chart(s) linted, 0 chart(s) failed", said)

    def test_kubernetes_knows_every_field_and_its_type(self):
        for name, objects in self.both.items():
            for one in objects:
                if one["kind"] != "ServiceMonitor":
                    for version in VERSIONS:
                        with self.subTest(f"{name}, {one['kind']} {one['metadata']['name']}, Kubernetes {version}"):
                            kubernetes_validate.validate(one, version, strict=True)

    def test_a_field_that_kubernetes_does_not_know_would_be_seen(self):
        wrong = json.loads(json.dumps(named(self.both["default"], "DaemonSet", "lake-forebay-worker")))
        wrong["spec"]["template"]["spec"]["containers"][0]["redinessProbe"] = {}
        with self.assertRaises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(wrong, VERSIONS[-1], strict=True)

    def test_the_chart_gives_the_roles_that_are_switched_on(self):
        self.assertEqual(set(pods(self.both["default"])), {"lake-forebay-coordinator", "lake-forebay-worker"})
        self.assertEqual(set(pods(self.both["all"])), {f"lake-lakes-{role}" for role in ("coordinator", "worker", "scheduler", "gateway")})
        kinds = {one["kind"] for one in self.both["all"]}
        self.assertLessEqual({"PodDisruptionBudget", "NetworkPolicy", "ServiceMonitor"}, kinds)

    def test_services_select_one_role_and_name_ports_that_it_has(self):
        for objects in self.both.values():
            for service in of_kind(objects, "Service"):
                (spec,) = [spec for labels, spec in pods(objects).values() if matches(service["spec"]["selector"], labels)]
                for port in service["spec"]["ports"]:
                    self.assertEqual(ports(spec)[port["targetPort"]], port["port"], service["metadata"]["name"])

    def test_selectors_are_those_of_their_pods_and_stay_from_version_to_version(self):
        for objects in self.both.values():
            for one in of_kind(objects, *CONTROLLERS, "PodDisruptionBudget"):
                selector = one["spec"]["selector"]["matchLabels"]
                self.assertEqual(len([1 for labels, _ in pods(objects).values() if matches(selector, labels)]), 1, one["metadata"])
                self.assertFalse([key for key in selector if "version" in key or "chart" in key])

    def test_pods_have_every_volume_that_their_containers_mount(self):
        for objects in self.both.values():
            claims = {claim["metadata"]["name"] for one in of_kind(objects, "StatefulSet") for claim in one["spec"].get("volumeClaimTemplates", [])}
            for name, (_, spec) in pods(objects).items():
                volumes = {volume["name"] for volume in spec["volumes"]} | (claims if name.endswith("-coordinator") else set())
                for container in spec["containers"] + spec.get("initContainers", []):
                    self.assertLessEqual({mount["name"] for mount in container["volumeMounts"]}, volumes, name)

    def test_names_are_as_short_and_as_unique_as_kubernetes_wants_them(self):
        for objects in self.both.values():
            self.assertLessEqual(max(len(one["metadata"]["name"]) for one in objects), 52)
            for _, spec in pods(objects).values():
                names = [port["name"] for container in spec["containers"] for port in container["ports"]]
                variables = [[variable["name"] for variable in container["env"]] for container in spec["containers"]]
                for unique in [names, [volume["name"] for volume in spec["volumes"]], *variables]:
                    self.assertEqual(len(unique), len(set(unique)), unique)
                # https://www.rfc-editor.org/rfc/rfc6335#section-5.1
                self.assertLessEqual(max(map(len, names)), 15)

    def test_secrets_are_the_charts_or_the_ones_that_values_name(self):
        given = {"own-auth", "store", "certificates", "postgres", "s3-keys", "gateway-token"}
        for objects, outside in zip(self.both.values(), (set(), given), strict=True):
            own = {one["metadata"]["name"] for one in of_kind(objects, "Secret")}
            wanted = {secret for _, spec in pods(objects).values() for secret in references(spec)}
            self.assertEqual(wanted, own | outside)

    def test_a_container_is_restarted_when_it_is_dead_and_gets_requests_when_it_is_ready(self):
        # With certificates the port speaks HTTPS.
        for objects, scheme in zip(self.both.values(), ("HTTP", "HTTPS"), strict=True):
            for name, (_, spec) in pods(objects).items():
                for container in spec["containers"]:
                    with self.subTest(f"{name}, {container['name']}"):
                        asked = {kind: container[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")}
                        self.assertEqual({kind: probe["path"] for kind, probe in asked.items()}, {
                            "startup": "/healthz", "liveness": "/healthz", "readiness": "/readyz"})
                        offered = {port["name"]: port["containerPort"] for port in container["ports"]}
                        for probe in asked.values():
                            self.assertEqual(probe["scheme"], scheme)
                            self.assertTrue(probe["port"] in offered or probe["port"] in offered.values(), probe)

    def test_the_one_coordinator_is_found_while_its_database_is_away(self):
        for objects, name in zip(self.both.values(), ("lake-forebay-coordinator", "lake-lakes-coordinator"), strict=True):
            self.assertIs(named(objects, "Service", name)["spec"]["publishNotReadyAddresses"], True)

    def test_pods_have_no_rights_that_they_need_not(self):
        for objects in self.both.values():
            for _, spec in [*pods(objects).values(), *(("", pod["spec"]) for pod in of_kind(objects, "Pod"))]:
                # Variables of services would be settings that Forebay refuses.
                self.assertIs(spec["enableServiceLinks"], False)
                self.assertIs(spec["automountServiceAccountToken"], False)
                self.assertEqual(spec["securityContext"]["runAsUser"], 10001)
                for container in spec["containers"]:
                    self.assertEqual(container["securityContext"], {
                        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}})

    def test_the_network_policy_lets_clients_and_prometheus_to_all_their_ports(self):
        (policy,) = of_kind(self.both["all"], "NetworkPolicy")
        opened = {port["port"] for rule in policy["spec"]["ingress"] for port in rule.get("ports", [])}
        self.assertEqual(opened, {port for _, spec in pods(self.both["all"]).values() for port in ports(spec).values()})

    def test_the_monitor_finds_each_port_of_metrics(self):
        (monitor,) = of_kind(self.both["all"], "ServiceMonitor")
        selector = monitor["spec"]["selector"]["matchLabels"]
        services = [one for one in of_kind(self.both["all"], "Service") if matches(selector, one["metadata"]["labels"])]
        offered = [port["name"] for service in services for port in service["spec"]["ports"] if port["name"].startswith("http")]
        self.assertEqual(sorted(offered), ["http", "http", "http", "http", "http-executor"])
        self.assertEqual({endpoint["port"] for endpoint in monitor["spec"]["endpoints"]}, set(offered))
        for endpoint in monitor["spec"]["endpoints"]:
            self.assertEqual(endpoint["authorization"]["credentials"], {"name": "metrics", "key": "token"})
            self.assertEqual((endpoint["scheme"], endpoint["tlsConfig"]["ca"]["secret"]["key"]), ("https", "ca.crt"))

    def test_settings_are_written_as_the_file_has_them(self):
        (config,) = of_kind(self.both["all"], "ConfigMap")
        for line in ('lease = "10s"', "budget = 1.5", "query-history = false", 'file-roots = ["/mnt/lake"]'):
            self.assertIn(line, config["data"]["forebay.toml"].splitlines())

    def test_values_that_the_chart_does_not_know_are_refused(self):
        self.assertIn("additional properties 'drm' not allowed", refused("worker.drm=1GiB"))
        self.assertIn("worker/dram", refused("worker.dram=1G i"))
        self.assertIn("worker/volume/type", refused("worker.volume.type=tmpfs"))

    def test_what_could_not_work_is_refused_with_the_remedy(self):
        self.assertIn("set gateway.keysSecret", refused("gateway.enabled=true"))
        self.assertIn("set metrics.serviceMonitor.tokenSecret.name", refused("metrics.serviceMonitor.enabled=true"))

    def test_every_value_has_its_place_in_the_schema(self):
        chart = ROOT / "dist/chart"
        schema = json.loads((chart / "values.schema.json").read_text())

        def missing(values, schema, path):
            for key, value in values.items():
                known = schema["properties"].get(key)
                if known is None:
                    yield f"{path}{key}"
                elif isinstance(value, dict) and "properties" in known:
                    yield from missing(value, known, f"{path}{key}.")
        self.assertEqual(list(missing(yaml.safe_load((chart / "values.yaml").read_text()), schema, "")), [])
