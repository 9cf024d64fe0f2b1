"""aws_plugin.py - the AWS plugin in its real host, against the fake cloud with all its faults"""
import base64
import email
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "clouds")]
from aws import KEY_ID
from plugin_cloud import PluginCloud, check_manual, how, offers, same
from provider_harness import OWNER, Provider, tap

G5, SPOT, H100 = "us-east-1|g5.xlarge|on-demand", "us-east-1|g5.xlarge|spot", "us-east-1|p5.48xlarge|on-demand"
IP, GIB = 5000, 110


class Cloud(PluginCloud):
    name, offer = "aws", G5
    given = None  # other secrets than the usual pair

    def start_plugin(self, key, options):
        return Provider("aws", options=dict({"endpoint": self.fake.url, "regions": ["us-east-1"]}, **options),
                        secrets={"access_key_id": KEY_ID, "secret_access_key": key + "\n"} if self.given is None else self.given,
                        http={"rate": 1000.0, "burst": 1000})

    def sent(self, n=-1):
        """The parameters of a RunInstances."""
        return [q for q in self.fake.get("requests") if q["endpoint"] == "create"][n]["body"]


def test_probe():
    """the account of the keys"""
    with Cloud() as c:
        r = c.call("probe")
        same((r.kind, r.value["account"]), ("ok", "123456789012"), r.text)


if __name__ == "__main__":
    tap(globals())
