"""The objects that the chart gives, by `helm template`."""

import subprocess

import yaml

from tools import HELM, package, told

# go install gives a helm that thinks of no version of Kubernetes in particular.
KUBERNETES = "1.34"
RELEASE, NAMESPACE = "lake", "data"
CONTROLLERS = ("StatefulSet", "DaemonSet", "Deployment")


def arguments(values=()):
    return ["--kube-version", KUBERNETES, "--namespace", NAMESPACE, *(f"--values={file}" for file in values)]


def rendered(*values, settings=()):
    """The objects, with these files of values and these settings (`key=value`)."""
    text = told(HELM, "template", RELEASE, package(".tgz"), *arguments(values), *(f"--set={setting}" for setting in settings))
    return [one for one in yaml.safe_load_all(text) if one]


def refused(*settings):
    """What helm says that does not take these settings."""
    command = [HELM, "template", RELEASE, package(".tgz"), *arguments(), *(f"--set={setting}" for setting in settings)]
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode != 0, f"{settings} was taken"
    return done.stdout


def of_kind(objects, *kinds):
    return [one for one in objects if one["kind"] in kinds]


def named(objects, kind, name):
    (one,) = [one for one in of_kind(objects, kind) if one["metadata"]["name"] == name]
    return one


def pods(objects):
    """Labels and spec of each pod, by the name of what makes it."""
    made = {one["metadata"]["name"]: one["spec"]["template"] for one in of_kind(objects, *CONTROLLERS)}
    return {name: (pod["metadata"]["labels"], pod["spec"]) for name, pod in made.items()}


def matches(selector, labels):
    return selector.items() <= labels.items()


def ports(spec):
    """The ports of a pod's containers by their names."""
    return {port["name"]: port["containerPort"] for container in spec["containers"] for port in container["ports"]}
