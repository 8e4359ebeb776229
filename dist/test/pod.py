"""Pods of the chart as processes of this machine: the image's root file system, the pod's volumes, variables, user and probes."""

import base64
import contextlib
import os
import re
import shlex
import shutil

from chart import named
from tools import answer, running, told

# A container's root: the image below, changes above, volumes in their places, and read-only in the end.
ROOT = """set -e
mount -t tmpfs none {0}
mkdir {0}/upper {0}/work {0}/root
mount -t overlay overlay -o lowerdir={1},upperdir={0}/upper,workdir={0}/work {0}/root
mkdir -p {0}/root/proc
mount -t proc proc {0}/root/proc
cp {2} {0}/root/etc/hosts
{3}
mount -o remount,ro {0}/root
exec {4}
"""


class Cluster:
    """What stands in for Kubernetes: folders for volumes, secrets, addresses of pods by the names of their services."""

    def __init__(self, objects, secrets, image, settings, place):
        self.objects, self.secrets, self.image, self.settings, self.place = objects, secrets, image, settings, place
        self.addresses = {}
        self.hosts = place / "hosts"
        self.hosts.write_text("127.0.0.1 localhost\n")

    def address(self, service):
        """An address of its own for a pod, and its service's name for it."""
        self.addresses[service] = f"127.0.1.{len(self.addresses) + 1}"
        with self.hosts.open("a") as hosts:
            hosts.write(f"{self.addresses[service]} {service}\n")
        return self.addresses[service]

    def secret(self, name, key):
        if name in self.secrets:
            return self.secrets[name][key]
        return base64.b64decode(named(self.objects, "Secret", name)["data"][key]).decode()


class Pod:
    """A pod at an address."""

    def __init__(self, cluster, name, spec, address):
        self.cluster, self.name, self.spec, self.address = cluster, name, spec, address
        self.group = spec["securityContext"]["fsGroup"]
        self.volumes = {}

    def volume(self, name):
        """The folder of a volume, made as kubelet makes it."""
        if name not in self.volumes:
            folder = self.cluster.place / f"{self.name}-{name}"
            folder.mkdir()
            self.volumes[name] = self.filled(folder, next((one for one in self.spec["volumes"] if one["name"] == name), {}))
        return self.volumes[name]

    def filled(self, folder, volume):
        if "hostPath" in volume:
            return volume["hostPath"]["path"]
        if "configMap" in volume:
            for file, text in named(self.cluster.objects, "ConfigMap", volume["configMap"]["name"])["data"].items():
                (folder / file).write_text(text)
        elif "secret" in volume:
            for file, text in self.cluster.secrets[volume["secret"]["secretName"]].items():
                (folder / file).write_text(text)
                os.chown(folder / file, 0, self.group)
                (folder / file).chmod(volume["secret"]["defaultMode"])
            folder.chmod(0o755)
        else:
            # Root's and the group's, open to all, as an emptyDir is.
            os.chown(folder, 0, self.group)
            folder.chmod(0o2777)
        return folder

    def variables(self, container):
        """What a container's variables are; later ones may use earlier ones."""
        place = {"status.podIP": self.address, "status.hostIP": "127.0.1.200", "spec.nodeName": "node-1"}
        found = dict(line.split("=", 1) for line in self.cluster.settings["config"]["Env"])
        for variable in container["env"]:
            source = variable.get("valueFrom", {})
            if "fieldRef" in source:
                found[variable["name"]] = place[source["fieldRef"]["fieldPath"]]
            elif "secretKeyRef" in source:
                found[variable["name"]] = self.cluster.secret(source["secretKeyRef"]["name"], source["secretKeyRef"]["key"])
            else:
                found[variable["name"]] = variable["value"]
        return found

    def command(self, container, args=None):
        """The process of a container and its environment. It listens at the pod's address instead of at all, since others are here too."""
        variables = self.variables(container)
        expanded = [re.sub(r"\$\((\w+)\)", lambda name: variables[name[1]], word) for word in args or container["args"]]
        words = [word.replace("0.0.0.0:", f"{self.address}:") for word in expanded]
        root = self.cluster.place / f"{self.name}-{container['name']}-root"
        root.mkdir(exist_ok=True)
        binds = []
        for mount in sorted(container["volumeMounts"], key=lambda mount: mount["mountPath"]):
            at = shlex.quote(f"{root}/root{mount['mountPath']}")
            binds.append(f"mkdir -p {at}; mount --bind {shlex.quote(str(self.volume(mount['name'])))} {at}")
            if mount.get("readOnly"):
                binds.append(f"mount -o remount,bind,ro {at}")
        user = self.spec["securityContext"]
        chroot = [shutil.which("chroot"), f"--userspec={user['runAsUser']}:{user['runAsGroup']}", f"--groups={self.group}", f"{root}/root"]
        program = shlex.join([*chroot, *self.cluster.settings["config"]["Entrypoint"], *words])
        script = ROOT.format(root, self.cluster.image, self.cluster.hosts, "\n".join(binds), program)
        # The shell's own programs are found where they are on this machine; the container's are named in full.
        variables["PATH"] = os.environ["PATH"]
        return [shutil.which("unshare"), "--mount", "--propagation", "private", "sh", "-c", script], variables

    def run(self, container, *args):
        """What a container prints that ends by itself; with other arguments than its own, if there are any."""
        command, environment = self.command(container, args)
        return told(*command, env=environment)

    @contextlib.contextmanager
    def started(self):
        """All containers, each of which answers its probes."""
        ports = {port["name"]: port["containerPort"] for container in self.spec["containers"] for port in container["ports"]}
        with contextlib.ExitStack() as stack:
            for container in self.spec["containers"]:
                command, environment = self.command(container)
                process = stack.enter_context(running(command, env=environment))
                for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                    asked = container[probe]["httpGet"]
                    scheme = asked.get("scheme", "HTTP").lower()
                    answer(f"{scheme}://{self.address}:{ports[asked['port']]}{asked['path']}", process)
            yield
