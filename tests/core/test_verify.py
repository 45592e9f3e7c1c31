"""Plans against llama-fit-params: what it is asked, how its answer is read and compared, and every way it can fail."""

from __future__ import annotations

import json
import os

import pytest

from gpus_app.core.probes.program import ProgramRun
from models_app.core import cli
from models_app.core.catalog import MemoryUse, Projection
from models_app.core.errors import VerifyError
from models_app.core.launch.fit_params import fit_params_words, flag_value, has_flag
from models_app.core.planning.table import model_table
from models_app.core.planning.verify import Measured, compare, parse_fit_params, parse_version, streams_weights
from models_app.core.plans import verification
from models_app.core.plans.verification import find_fit_params, verify_plan
from models_app.core.units import MIB
from tests.fit_params import CASES, plan_of

VERSION = "version: 0.6.0-dev (build 0, commit unknown)\nbuilt with GNU 12.2.0 for Linux x86_64\n"
NO_MODEL = """0.00.004.384 E load_backend: failed to find ggml_backend_init in libggml-rpc.so
0.00.010.825 E gguf_init_from_reader: failed to read magic
0.00.010.958 E llama_model_load: error loading model: llama_model_loader: failed to load model from m.gguf
0.00.010.964 E llama_model_load_from_file_impl: failed to load model
terminate called after throwing an instance of 'std::runtime_error'
  what():  failed to load model
"""


class Recorded:
    """Runs nothing: answers with these texts and keeps what it was asked."""

    def __init__(self, stdout="", stderr="", exit_code=0):
        self.answer = ProgramRun(exit_code, stdout, stderr)
        self.asked = []

    def __call__(self, words, seconds):
        self.asked.append(list(words))
        return ProgramRun(0, "", VERSION) if "--version" in words else self.answer


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
class TestRecordedAnswers:
    @pytest.fixture
    def seen(self, case, zoo_header):
        header = zoo_header(case.model)
        run = Recorded(case.recorded)
        return verify_plan(plan_of(header, case.devices, case.text), model_table(header), "fit", ["--rpc", "x"], run)

    def test_weights_and_context_are_llama_cpps(self, seen, case):
        difference = seen.comparison.difference
        for use in (*difference.devices, difference.host):
            assert (use.model_bytes, use.context_bytes) == (0, 0)
            assert abs(use.compute_bytes) <= 16 * MIB
        assert len(difference.devices) == case.devices
        assert seen.comparison.agreement_percent <= 0.2

    def test_the_build_is_named(self, seen):
        assert seen.build == "0.6.0-dev (build 0, commit unknown)"

    def test_slots_are_noted(self, seen, case):
        assert bool(seen.notes) == ("--parallel" in case.text)


def test_what_llama_fit_params_is_asked(zoo_header):
    header = zoo_header("gpt-oss-20b-mxfp4")
    plan = plan_of(header, 1, "-c 16384 -ngl 99 -ctk f16 -ctv f16 -ub 512 --n-cpu-moe=12 --swa-full --temp 0.1")
    run = Recorded("CUDA0 1 2 3\nHost 1 2 3\n")
    verify_plan(plan, model_table(header), "/opt/llama-fit-params", ["--rpc", "a:1"], run)
    words, version = run.asked
    assert version == ["/opt/llama-fit-params", "--version"]
    assert words[0] == "/opt/llama-fit-params"
    assert words[-5:] == ["--rpc", "a:1", "--no-repack", "--fit-print", "on"]
    assert words[words.index("-m") + 1] == header.path
    assert {"--n-cpu-moe=12", "--swa-full", "-ngl", "-fa"} <= set(words)
    assert not {"--port", "--kv-unified", "--spec-type", "--temp", "--jinja", "-cms"} & set(words)


class TestWords:
    ARGV = (
        "llama-server",
        "-m",
        "a b.gguf",
        "--port",
        "1",
        "--flash-attn=off",
        "-ngl",
        "-1",
        "-md",
        "d.gguf",
        "-c",
        "8",
    )

    def test_only_what_decides_over_memory(self):
        assert fit_params_words(self.ARGV) == ["-m", "a b.gguf", "--flash-attn=off", "-ngl", "-1", "-c", "8"]

    def test_values_and_flags(self):
        assert flag_value(self.ARGV, "flashAttn") == "off"
        assert flag_value((*self.ARGV, "-fa", "on"), "flashAttn") == "on"
        assert flag_value(self.ARGV, "kvK") == ""
        assert has_flag((*self.ARGV, "--swa-full"), "--swa-full")
        assert not has_flag(self.ARGV, "--swa-full")


class TestParser:
    def test_names_with_blanks_and_other_lines(self):
        measured = parse_fit_params("a banner\n\n Metal GPU 0  10 20 30 \nHOST 1 2 3\r\n")
        assert measured.devices == (MemoryUse("Metal GPU 0", 10 * MIB, 20 * MIB, 30 * MIB),)
        assert measured.host == MemoryUse("host", MIB, 2 * MIB, 3 * MIB)

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "\n \n",
            "CUDA0 1 2 3\n",
            "Host 1 2\n",
            "Host 1 2 3\nCUDA0 1 2 3\n",
            "Host 1 2 3\nHost 1 2 3\n",
            "Host 1 -2 3\n",
            "Host 1 2.5 3\n",
            "Host ١ 2 3\n",
            "Host 9999999999 2 3\n",
            "1 2 3",
            "-c 4096 -ngl 99 -ts 3,2\n",
            " " * 1_000_000 + "1 2 3",
            "\0" * 100_000,
        ],
    )
    def test_what_is_no_answer(self, text):
        with pytest.raises(VerifyError) as error:
            parse_fit_params(text)
        assert error.value.code == "unreadable"
        assert len(str(error.value)) < 1000

    def test_versions(self):
        assert parse_version(VERSION) == "0.6.0-dev (build 0, commit unknown)"
        assert parse_version("ggml_cuda_init: found 1 device\nversion: 6543 (abcdef01)\n") == "6543 (abcdef01)"
        assert parse_version("garbage") == ""
        assert len(parse_version("version: " + "9" * 10_000)) == 200

    def test_devices_that_stream_weights(self):
        assert streams_weights(parse_fit_params("CUDA0 1 2 3\nHost 1 2 3"))
        assert streams_weights(parse_fit_params("ROCm0 1 2 3\nHost 1 2 3"))
        assert not streams_weights(parse_fit_params("Vulkan0 1 2 3\nHost 1 2 3"))


class TestComparison:
    MEASURED = Measured((MemoryUse("CUDA0", 100 * MIB, 50 * MIB, 40 * MIB),), MemoryUse("host", 10 * MIB, 0, 0))

    def projection(self, *devices):
        return Projection("exact", devices, MemoryUse("host", 10 * MIB + 5, 0, 0))

    def test_ours_rounds_down_as_theirs_does(self):
        comparison = compare(self.MEASURED, self.projection(MemoryUse("GPU0", 101 * MIB - 1, 50 * MIB, 40 * MIB)))
        assert comparison.agreement_percent == 0
        assert comparison.difference.devices == (MemoryUse("CUDA0"),)

    def test_differences_of_both_signs_do_not_cancel(self):
        comparison = compare(self.MEASURED, self.projection(MemoryUse("GPU0", 99 * MIB, 51 * MIB, 40 * MIB)))
        assert comparison.difference.devices == (MemoryUse("CUDA0", MIB, -MIB, 0),)
        assert comparison.agreement_percent == 1.0

    def test_other_devices_than_planned(self):
        with pytest.raises(VerifyError, match=r"llama.cpp uses 1 device, the plan is for 0") as error:
            compare(self.MEASURED, self.projection())
        assert error.value.code == "devices"

    def test_nothing_at_all(self):
        nothing = MemoryUse("host")
        assert compare(Measured((), nothing), Projection("exact", (), nothing)).agreement_percent == 0


class TestRefusals:
    @pytest.fixture
    def error_of(self, zoo_header):
        header = zoo_header("qwen3-8b-q4_k_m")
        plan = plan_of(header, 1, "-c 8192")

        def call(run):
            with pytest.raises(VerifyError) as error:
                verify_plan(plan, model_table(header), "/opt/llama-fit-params", [], run)
            return error.value

        return call

    def test_the_line_that_says_most(self, error_of):
        error = error_of(Recorded(stderr=NO_MODEL, exit_code=-6))
        assert error.code == "refused"
        assert str(error) == (
            "llama-fit-params died of signal 6: llama_model_load: error loading model: llama_model_loader: failed to"
            " load model from m.gguf"
        )

    def test_an_old_build(self, error_of):
        error = error_of(Recorded(stderr="error: invalid argument: --fit-print\n", exit_code=1))
        assert str(error) == "llama-fit-params refused the command: invalid argument: --fit-print"

    def test_no_word_of_why(self, error_of):
        assert str(error_of(Recorded(exit_code=1))).endswith("it did not say why")

    def test_out_of_time(self, error_of):
        assert error_of(Recorded(exit_code=None)).code == "timeout"

    def test_a_file_that_cannot_run(self, error_of):
        def run(_words, _seconds):
            raise OSError(8, "Exec format error")

        error = error_of(run)
        assert (error.code, str(error)) == (
            "not-started",
            "/opt/llama-fit-params cannot be run: Exec format error",
        )


class TestFinding:
    @pytest.fixture
    def programs(self, tmp_path):
        for name in ("llama-server", "llama-fit-params"):
            (tmp_path / name).write_text("#!/bin/sh\n")
            (tmp_path / name).chmod(0o755)
        return tmp_path

    def test_itself_or_beside_the_server(self, programs):
        expected = str(programs / "llama-fit-params")
        assert find_fit_params(expected) == expected
        assert find_fit_params(str(programs / "llama-server")) == expected
        assert find_fit_params("llama-server", str(programs)) == expected
        assert find_fit_params("llama-fit-params", str(programs)) == expected

    def test_beside_the_file_that_a_link_means(self, programs, tmp_path):
        (tmp_path / "bin").mkdir()
        link = tmp_path / "bin" / "llama-server"
        link.symlink_to(programs / "llama-server")
        assert os.path.samefile(find_fit_params(str(link)), programs / "llama-fit-params")

    @pytest.mark.parametrize("name", ["llama-server", "llama-fit-params", "nothing", "."])
    def test_missing(self, tmp_path, name):
        with pytest.raises(VerifyError) as error:
            find_fit_params(str(tmp_path / name))
        assert error.value.code == "missing"


class TestOnTheCommandLine:
    """With a small script in the place of llama.cpp."""

    @pytest.fixture
    def plan(self, tmp_path, monkeypatch, capsys, zoo_folder):
        monkeypatch.setenv("QM_DATA_DIR", str(tmp_path / "data"))
        monkeypatch.setattr(verification, "FIT_PARAMS_SECONDS", 2.0)
        program = tmp_path / "llama-fit-params"

        def call(body, *words, model="qwen3-8b-q4_k_m"):
            program.write_text(f"#!/bin/sh\n{body}\n")
            program.chmod(0o755)
            words = ["plan", zoo_folder / f"{model}.gguf", "--ram", "64", "--verify", program, *words]
            code = cli.main([str(word) for word in words])
            captured = capsys.readouterr()
            assert "Traceback" not in captured.err
            return code, captured.out

        return call

    SPEAK = f"case $1 in --version) printf '{VERSION.splitlines()[0]}\\n' >&2;; *) cat \"$0.txt\";; esac"
    PINS = ("--vram", "80", "--ctx", "32768", "--ctk", "f16", "--ctv", "f16", "--ub", "512")

    def test_json(self, plan, tmp_path):
        (tmp_path / "llama-fit-params.txt").write_text(CASES[0].recorded)
        code, out = plan(self.SPEAK, *self.PINS, "--json")
        verify = json.loads(out)["verify"]
        assert code == 0
        assert set(verify) == {"binary", "build", "devices", "host", "difference", "agreement_percent", "notes"}
        assert verify["devices"][0] == {
            "name": "RPC0",
            "model_bytes": 4455 * MIB,
            "context_bytes": 4608 * MIB,
            "compute_bytes": 360 * MIB,
        }
        assert verify["difference"]["host"] == {"model_bytes": 0, "context_bytes": 0, "compute_bytes": 0}
        assert verify["agreement_percent"] == 0

    def test_a_table_for_people(self, plan, tmp_path):
        (tmp_path / "llama-fit-params.txt").write_text(CASES[0].recorded)
        code, out = plan(self.SPEAK, *self.PINS)
        assert code == 0
        assert "llama.cpp agrees to 0.0 %, version 0.6.0-dev" in out
        assert "4,455 (+0)" in out

    def test_far_off_is_not_called_agreement(self, plan):
        code, out = plan("echo CUDA0 1 1 1; echo Host 1 1 1", *self.PINS)
        assert code == 0
        assert "llama.cpp differs by" in out

    @pytest.mark.parametrize(
        ("body", "error"),
        [
            ("exec sleep 600", "timeout"),
            ("yes", "timeout"),
            ("head -c 3000000 /dev/zero", "unreadable"),
            ("echo 'error: invalid argument: -m' >&2; exit 1", "refused"),
            ("kill -11 $$", "refused"),
            ("exit 0", "unreadable"),
            ("echo Host 1 1 1", "devices"),
        ],
    )
    def test_failures_are_a_sentence(self, plan, body, error):
        code, out = plan(body, *self.PINS, "--json")
        answer = json.loads(out)
        assert code == 1
        assert answer["verdict"] == "fits"
        assert answer["verify"]["error"]["code"] == error
        assert "\n" not in answer["verify"]["error"]["message"]

    def test_a_program_that_is_none(self, plan, tmp_path):
        code, out = plan("", *self.PINS, "--verify", str(tmp_path / "none"))
        assert code == 1
        assert "not verified: " in out

    def test_extra_words_are_passed_on(self, plan):
        code, out = plan('echo "error: $*" >&2; exit 1', *self.PINS, "--verify-arg=--rpc 'a b:1'", "--verify-arg=-x")
        assert code == 1
        assert "--rpc a b:1 -x --no-repack --fit-print on" in out

    def test_a_model_without_a_plan(self, plan):
        code, out = plan("exit 0", "--vram", "8", "--json", model="nomic-embed-text-v1.5-f16")
        assert (code, json.loads(out)["verify"]["error"]["code"]) == (1, "unplanned")

    @pytest.mark.parametrize("words", [("--verify", ""), ("--verify-arg", "'")])
    def test_wrong_usage(self, plan, words):
        assert plan("exit 0", *self.PINS, *words)[0] == 2

    def test_arguments_without_a_program(self, capsys):
        assert cli.main(["plan", "x.gguf", "--verify-arg", "x"]) == 2
        assert "--verify-arg needs --verify" in capsys.readouterr().err
