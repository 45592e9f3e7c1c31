"""`plan` on the command line: what it prints, pins, budgets, bad input, exit codes."""

from __future__ import annotations

import json

import pytest

from gpus_app.core.probes import machine
from gpus_app.core.readings import DeviceReading, MachineReading, MemoryReading
from models_app.core import cli
from models_app.core.units import GIB
from tests.core.search_cases import MODELS
from tests.gguf_bytes import header_bytes

PLACEMENT = {"ctx", "ngl", "n_cpu_moe", "ctk", "ctv", "ub", "b", "parallel", "tensor_split"}
ASKED_FOR = {"file", "engine", "devices", "host", "warnings", "class", "placement", "est_vram_gib", "est_ram_gib"}


@pytest.fixture(autouse=True)
def _data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("QM_DATA_DIR", str(tmp_path / "data"))


@pytest.fixture
def run(capsys):
    """Exit code, standard output and standard error of one call."""

    def call(*words):
        try:
            code = cli.main([str(word) for word in words])
        except SystemExit as error:
            code = error.code
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return code, captured.out, captured.err

    return call


@pytest.fixture
def answer(run, zoo_folder):
    """The object that `plan --json` prints for a model of the zoo."""

    def call(model, *words):
        code, out, err = run("plan", min(zoo_folder.glob(f"{model}*.gguf")), "--json", *words)
        assert (code, err) == (0, "")
        (line,) = out.splitlines()
        return json.loads(line)

    return call


@pytest.fixture
def machine_with(monkeypatch):
    """Probes that see these free GiB per device and this much RAM."""

    def see(*free, ram=32):
        devices = tuple(
            DeviceReading(index, f"NVIDIA card {index}", 24 * GIB, round((24 - size) * GIB))
            for index, size in enumerate(free)
        )
        seen = MachineReading(devices, MemoryReading(64 * GIB, ram * GIB))
        monkeypatch.setattr(machine, "read_machine", lambda: seen)

    return see


class TestAnswer:
    @pytest.mark.parametrize("model", MODELS)
    def test_it_is_the_projection_of_its_own_placement(self, answer, run, model, zoo_folder):
        found = answer(model, "--vram", "7,9", "--ram", 100)
        assert set(found) >= ASKED_FOR | {"argv", "reasons"}
        placement = found["placement"]
        assert set(placement) == PLACEMENT
        knobs = {
            "--ctx": placement["ctx"] * placement["parallel"],
            "--ub": placement["ub"],
            "-b": placement["b"],
            "--ctk": placement["ctk"],
            "--ctv": placement["ctv"],
            "--parallel": placement["parallel"],
            "--ngl": placement["ngl"],
            "--n-cpu-moe": placement["n_cpu_moe"],
            "--devices": 2,
            "--tensor-split": ",".join(str(share) for share in placement["tensor_split"]),
        }
        path = min(zoo_folder.glob(f"{model}*.gguf"))
        _code, out, _err = run("project", path, "--json", *(word for pair in knobs.items() for word in pair))
        projected = json.loads(out)
        assert found["devices"] == projected["devices"]
        assert found["host"] == projected["host"]

    def test_the_command_says_the_same_as_the_placement(self, answer):
        found = answer("gpt-oss-20b-mxfp4", "--vram", 12, "--parallel", 2)
        argv, placement = found["argv"], found["placement"]
        values = {
            flag: argv[argv.index(flag) + 1] for flag in ("-c", "-ngl", "--n-cpu-moe", "-ub", "-ctk", "--parallel")
        }
        assert values == {
            "-c": str(2 * placement["ctx"]),
            "-ngl": str(placement["ngl"]),
            "--n-cpu-moe": str(placement["n_cpu_moe"]),
            "-ub": str(placement["ub"]),
            "-ctk": placement["ctk"],
            "--parallel": "2",
        }

    def test_the_estimate_is_the_sum_of_the_terms(self, answer):
        found = answer("qwen35-9b-q4_k_m", "--vram", "8,8")
        assert found["est_vram_gib"] * GIB == pytest.approx(
            sum(sum(term["device_bytes"]) for term in found["terms"]), abs=0.01 * GIB
        )
        for number, most in enumerate((8, 8)):
            assert sum(term["device_bytes"][number] for term in found["terms"]) <= most * GIB

    def test_reasons_are_sentences(self, answer):
        found = answer("llama31-8b-q4_k_m", "--vram", 8)
        assert any("context limited by VRAM target 8.0 GiB" in text for text in found["reasons"])
        assert all(text[0].isupper() and text.endswith(".") for text in found["reasons"])

    def test_several_files_one_line_each(self, run, zoo_folder):
        files = [zoo_folder / name for name in ("qwen25-0.5b-f16.gguf", "none.gguf", "llama32-1b-q8_0.gguf")]
        code, out, err = run("plan", *files, "--json", "--vram", 8)
        first, failed, last = map(json.loads, out.splitlines())
        assert (code, err) == (1, "")
        assert (first["class"], last["class"]) == ("llm", "llm")
        assert set(failed["error"]) == {"code", "message", "offset"}

    def test_another_class_has_a_command_and_an_estimate(self, answer):
        found = answer("nomic-embed-text-v1.5-f16", "--vram", 8)
        assert (found["class"], found["placement"]) == ("embedding", None)
        assert "--embeddings" in found["argv"]
        assert found["est_vram_gib"] == pytest.approx(0.75, abs=0.05)

    def test_any_part_of_a_set_stands_for_it(self, run, zoo_folder):
        parts = sorted(zoo_folder.glob("llama33-70b*"))
        plans = [json.loads(run("plan", part, "--json", "--vram", 48)[1]) for part in parts]
        assert len({json.dumps(plan["placement"]) for plan in plans}) == 1
        assert all(plan["argv"][2] == str(parts[0]) for plan in plans)

    def test_for_people(self, run, zoo_folder):
        code, out, err = run("plan", zoo_folder / "gpt-oss-20b-mxfp4.gguf", "--vram", 12, "--ram", 32)
        assert (code, err) == (0, "")
        for part in (
            "spills to CPU, VRAM",
            "Weights",
            "Total",
            "GPU0",
            "RAM",
            "try: ",
            "llama-server -m ",
            "experts of",
        ):
            assert part in out

    def test_for_people_an_incomplete_set_warns(self, run, zoo_folder, tmp_path):
        for part in zoo_folder.glob("llama33-70b*-0000[13]-of*"):
            (tmp_path / part.name).symlink_to(part)
        _code, out, _err = run("plan", sorted(tmp_path.iterdir())[0], "--vram", 48)
        assert "warning: 1 of 3 parts of the set is missing" in out

    def test_its_help_names_no_default_that_the_search_does_not_keep(self, capsys):
        for verb, named in (("plan", False), ("project", True)):
            with pytest.raises(SystemExit):
                cli.main([verb, "--help"])
            assert ("micro-batch (512)" in capsys.readouterr().out) == named

    def test_for_people_without_a_gpu(self, run, zoo_folder):
        _code, out, _err = run("plan", zoo_folder / "qwen3-0.6b-q8_0.gguf", "--vram", 0, "--ram", 32)
        assert ": fits, RAM " in out.splitlines()[0]
        assert "VRAM" not in out.splitlines()[0]

    def test_for_people_what_nobody_can_judge(self, run, tmp_path):
        path = tmp_path / "m.gguf"
        pairs = [["general.architecture", "string", "llama"], ["llama.block_count", "u32", 10**9]]
        path.write_bytes(header_bytes({"kv": pairs, "tensors": []}) + bytes(64))
        code, out, _err = run("plan", path, "--vram", 8, "--ram", 8)
        assert code == 0
        assert out.splitlines()[0] == f"{path}: cannot judge"
        assert "in the header, block_count is 1000000000" in out
        assert "Total" not in out


class TestPins:
    def test_every_knob(self, answer):
        knobs = ["--ctx", 16384, "--ub", 256, "-b", 1024, "--ctk", "q5_1", "--ctv", "q5_1", "--parallel", 4]
        found = answer("llama31-8b-q4_k_m", "--vram", 24, *knobs, "--ngl", 20, "--fa", "on")
        assert found["placement"] == {
            "ctx": 4096,
            "ngl": 20,
            "n_cpu_moe": 0,
            "ctk": "q5_1",
            "ctv": "q5_1",
            "ub": 256,
            "b": 1024,
            "parallel": 4,
            "tensor_split": [],
        }

    def test_a_separate_cache_for_each_slot(self, answer):
        model = ("gemma3-12b-q4_k_m", "--vram", 24, "--ctx", 65536, "--parallel", 4)
        shared, apart = answer(*model), answer(*model, "--no-kv-unified")
        assert shared["devices"] != apart["devices"]
        assert apart["argv"][-1] == "--no-kv-unified"

    def test_all_layers(self, answer):
        found = answer("qwen25-32b-q4_k_m", "--vram", 8, "--ngl", "all", "--ctx", 8192)
        assert (found["placement"]["ngl"], found["verdict"]) == (99, "over")
        assert any("Needs" in text and "more than the target 8.0 GiB" in text for text in found["reasons"])

    def test_a_hair_too_much_says_by_how_much(self, answer):
        pins = ("--ctx", 40960, "--ctk", "q8_0", "--ctv", "q8_0", "--n-cpu-moe", 45)
        found = answer("qwen3-30b-a3b-q4_k_m", "--vram", 5, "--ram", 48, *pins)
        assert found["verdict"] == "over"
        assert any("MiB more than the target 5.0 GiB" in text for text in found["reasons"])

    def test_rows_of_logits(self, answer):
        pins = ("llama31-8b-q4_k_m", "--vram", 24, "--ctx", 8192)
        few, all_rows = answer(*pins), answer(*pins, "--outputs", "all")
        assert all_rows["devices"][0]["compute_bytes"] > few["devices"][0]["compute_bytes"]

    def test_a_split(self, answer):
        found = answer("llama31-8b-q4_k_m", "--vram", "12,12", "--tensor-split", "3,1")
        assert found["placement"]["tensor_split"] == [3, 1]


class TestBudget:
    def test_what_is_free(self, answer, machine_with):
        machine_with(20, 10)
        found = answer("llama33-70b-q4_k_m")
        assert found["target_gib"] == 30
        assert len(found["devices"]) == 2
        assert found["placement"]["tensor_split"][0] > found["placement"]["tensor_split"][1]

    def test_without_a_gpu_everything_is_in_ram(self, answer, machine_with):
        machine_with(ram=16)
        found = answer("llama31-8b-q4_k_m")
        assert (found["devices"], found["placement"]["ngl"], found["est_vram_gib"]) == ([], 0, 0)
        assert found["est_ram_gib"] <= 16
        assert found["verdict"] == "fits"

    def test_ram_alone(self, answer, machine_with):
        machine_with(ram=64)
        assert answer("llama31-8b-q4_k_m", "--ram", 8)["est_ram_gib"] <= 8

    def test_no_vram_is_no_gpu(self, answer):
        assert answer("llama31-8b-q4_k_m", "--vram", 0, "--ram", 32)["devices"] == []
        assert answer("llama31-8b-q4_k_m", "--devices", 0, "--ram", 32)["devices"] == []

    def test_one_target_for_several_devices(self, answer):
        found = answer("llama31-8b-q4_k_m", "--vram", 16, "--devices", 2)
        assert (found["target_gib"], len(found["devices"])) == (16, 2)

    def test_absurdly_much(self, answer):
        assert answer("qwen25-0.5b-f16", "--vram", "1e12", "--ram", "1e12")["verdict"] == "fits"


class TestBadInput:
    @pytest.mark.parametrize(
        "words",
        [
            ("--vram", "nan"),
            ("--vram", "-3"),
            ("--vram", "x"),
            ("--vram", ""),
            ("--vram", "1e99"),
            ("--ram", "-1"),
            ("--vram", "8,8", "--devices", "3"),
            ("--vram", "8", "--tensor-split", "1,2"),
            ("--ctx", "0"),
            ("--parallel", "0"),
            ("--ctk", "q9"),
            ("--ngl", "-1"),
            ("--vram", ",".join(["8"] * 17)),
            ("--vram", "0,24"),
        ],
    )
    def test_usage(self, run, zoo_folder, words):
        code, out, err = run("plan", zoo_folder / "qwen25-0.5b-f16.gguf", *words)
        assert (code, out) == (2, "")
        assert err

    def test_a_file_that_is_no_model(self, run, tmp_path):
        path = tmp_path / "broken.gguf"
        path.write_bytes(b"GGUF\x03")
        code, out, err = run("plan", path, "--vram", 8)
        assert (code, out) == (1, "")
        assert str(path) in err
