"""nebius_api.py - message classes of Nebius' own Python SDK, as google.protobuf makes them from its descriptors

    N = nebius_api.message;  vm = N("nebius.compute.v1.Instance")(metadata=...)

So the bytes of our plugin are judged by the cloud's field numbers, not by ours.  Needs the venv of tests/venv.py.
"""
import functools
import importlib
import sys
import sysconfig

sys.path.insert(0, sysconfig.get_paths()["purelib"])  # the fake beside this file has the SDK's name

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # noqa: E402
from nebius.base.protos.dynamic import REGISTRY  # noqa: E402

PARTS = ("compute.v1", "common.v1", "iam.v1", "billing.v1alpha1", "capacity.v1", "vpc.v1")
POOL = descriptor_pool.DescriptorPool()


def load():
    for part in PARTS:
        importlib.import_module("nebius.api.nebius." + part)
    files, done = dict(REGISTRY._serialized_files), set()

    def add(name):
        if name in done:
            return
        done.add(name)
        for needed in descriptor_pb2.FileDescriptorProto.FromString(files[name]).dependency:
            add(needed)
        POOL.AddSerializedFile(files[name])

    for name in sorted(files):
        add(name)


@functools.cache
def message(name):
    return message_factory.GetMessageClass(POOL.FindMessageTypeByName(name))


@functools.cache
def method(path):
    """(request class, answer class) of /package.Service/Method."""
    service, name = path.strip("/").split("/")
    m = POOL.FindServiceByName(service).methods_by_name[name]
    return message(m.input_type.full_name), message(m.output_type.full_name)


load()
