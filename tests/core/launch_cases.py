"""Values that the launch tests share."""

from __future__ import annotations

from models_app.core.catalog import Header, Placement, Row
from models_app.core.launch.profile import LaunchProfile
from models_app.core.planning.checkpoints import Checkpoints
from models_app.core.settings import LoraRef, Override, Settings, SlotCache

SETTINGS = Settings(threads=8, slot_cache=SlotCache(enable=True, path="/var/cache/slot kv"))
HEADER = Header(architecture="qwen3moe", block_count=48, is_moe=True, context_length=32768)
ROW = Row(
    id="qwen",
    full_path="/models/qwen.gguf",
    file_name="qwen.gguf",
    draft_path="/models/draft mtp.gguf",
    draft_kind="mtp",
    mmproj_path="/models/mmproj.gguf",
)
PROFILE = LaunchProfile(spec="draft-mtp+ngram-map-k4v", checkpoints=Checkpoints(3, 1024))
PLACEMENT = Placement(65536, 49, 0, "q8_0", "q8_0", 1024, 2048)

EVERYTHING = Override(
    flash_attn="on",
    mmap="off",
    mlock=True,
    direct_io=False,
    no_op_offload=True,
    no_repack=True,
    swa_full=True,
    threads=4,
    threads_batch=6,
    prio=2,
    kv_k_draft="f16",
    kv_v_draft="f16",
    spec_default=True,
    spec_draft_n_max=7,
    spec_draft_n_min=1,
    spec_ngram_size_n=4,
    spec_ngram_size_m=5,
    spec_ngram_min_hits=2,
    chat_template_file="/templates/chat me.jinja",
    reasoning_budget=2048,
    dry=True,
    temp=0.0,
    top_k=40,
    top_p=0.95,
    min_p=0.05,
    presence_penalty=1.5,
    cache_reuse=256,
    cache_ram_mb=-1,
    log_verbosity=2,
    cache_idle_slots="on",
    context_shift="off",
    slot_prompt_similarity=0.25,
    slot_cache=True,
    rope_scaling="yarn",
    rope_freq_base=1e6,
    yarn_orig_ctx=32768,
    override_tensor=r"blk\.(1|2)\.ffn=CPU",
    loras=(LoraRef("a.gguf"), LoraRef("/l/b.gguf", 0.0)),
)
"""Every field that llama-server's renderer reads, set to something that it writes."""

EVERYTHING_PROFILE = LaunchProfile(
    spec="draft-mtp+ngram-map-k4v",
    checkpoints=Checkpoints(3, 1024),
    vision=True,
    projector_in_ram=True,
    tensor_split=("3", "1"),
    main_gpu=1,
    device_ids=("CUDA1", "CUDA0"),
)
