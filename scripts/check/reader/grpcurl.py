"""Stands in for grpcurl, which Debian does not package: the calls that the documents show, by reflection.

  grpcurl [-plaintext | -cacert FILE] [-H HEADER] [-d JSON] ADDRESS list|SERVICE/METHOD"""

import argparse
from pathlib import Path

import grpc
from google.protobuf import json_format
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

parser = argparse.ArgumentParser()
parser.add_argument("-plaintext", action="store_true")
parser.add_argument("-cacert", type=Path)
parser.add_argument("-H", dest="headers", action="append", default=[])
parser.add_argument("-d", dest="data", default="{}")
parser.add_argument("address")
parser.add_argument("what")
asked = parser.parse_args()

metadata = [tuple(header.split(": ", 1)) for header in asked.headers]
if asked.plaintext:
    channel = grpc.insecure_channel(asked.address)
else:
    channel = grpc.secure_channel(asked.address, grpc.ssl_channel_credentials(asked.cacert.read_bytes()))
if metadata:

    class WithMetadata(grpc.StreamStreamClientInterceptor, grpc.UnaryUnaryClientInterceptor):
        """Reflection needs the token too."""

        def intercept(self, proceed, details, request):
            return proceed(details._replace(metadata=metadata), request)

        intercept_stream_stream = intercept_unary_unary = intercept

    channel = grpc.intercept_channel(channel, WithMetadata())
database = ProtoReflectionDescriptorDatabase(channel)
if asked.what == "list":
    print("\n".join(sorted(database.get_services())))
else:
    service, name = asked.what.split("/")
    method = DescriptorPool(database).FindServiceByName(service).FindMethodByName(name)
    answer = GetMessageClass(method.output_type)
    call = channel.unary_unary(
        f"/{asked.what}", request_serializer=lambda m: m.SerializeToString(), response_deserializer=answer.FromString
    )
    request = json_format.Parse(asked.data, GetMessageClass(method.input_type)())
    print(json_format.MessageToJson(call(request, timeout=10)))
