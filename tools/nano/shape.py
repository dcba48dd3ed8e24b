"""The dimensions of nano and the values that config.json carries.

Everything the kernels specialise on (head_dim, rope, window, ratios, streams, Sinkhorn rounds) is DeepSeek-V4-Flash's;
only widths, counts and the vocabulary are small.  Every dimension splits in two along 128-blocks, so TP=2 works.
"""
CFG = dict(
    vocab_size=4096, hidden_size=256, num_hidden_layers=7, num_attention_heads=4, head_dim=512, qk_rope_head_dim=64,
    q_lora_rank=128, o_groups=2, o_lora_rank=128, sliding_window=128, compress_ratios=[0, 0, 4, 128, 4, 128, 4],
    rope_theta=10000, compress_rope_theta=160000, rope_factor=16, rope_orig=65536, beta_fast=32, beta_slow=1,
    index_n_heads=8, index_head_dim=128, index_topk=64, n_routed_experts=8, num_experts_per_tok=2,
    moe_intermediate_size=256, num_hash_layers=3, routed_scaling_factor=1.5, swiglu_limit=10.0, eps=1e-6,
    hc_mult=4, hc_sinkhorn_iters=20, hc_eps=1e-6,
    dspark_block_size=5, dspark_markov_rank=64, dspark_target_layer_ids=[4, 5, 6], dspark_stages=3, dspark_noise=4057)


def hf_config(cfg, dspark):
    """config.json of a checkpoint; dspark selects the 0731 form (three draft stages instead of one MTP block)."""
    drafts = cfg["dspark_stages"] if dspark else 1
    out = {
        "architectures": ["DeepseekV4ForCausalLM"], "model_type": "deepseek_v4",
        "torch_dtype": "bfloat16", "transformers_version": "4.57.1",
        "vocab_size": cfg["vocab_size"], "hidden_size": cfg["hidden_size"],
        "num_hidden_layers": cfg["num_hidden_layers"], "num_attention_heads": cfg["num_attention_heads"],
        "num_key_value_heads": 1, "head_dim": cfg["head_dim"], "qk_rope_head_dim": cfg["qk_rope_head_dim"],
        "q_lora_rank": cfg["q_lora_rank"], "o_groups": cfg["o_groups"], "o_lora_rank": cfg["o_lora_rank"],
        "sliding_window": cfg["sliding_window"], "compress_ratios": cfg["compress_ratios"] + [0] * drafts,
        "rope_theta": cfg["rope_theta"], "compress_rope_theta": cfg["compress_rope_theta"],
        "rope_scaling": {"type": "yarn", "factor": cfg["rope_factor"],
                         "original_max_position_embeddings": cfg["rope_orig"],
                         "beta_fast": cfg["beta_fast"], "beta_slow": cfg["beta_slow"]},
        "max_position_embeddings": cfg["rope_orig"] * cfg["rope_factor"],
        "index_n_heads": cfg["index_n_heads"], "index_head_dim": cfg["index_head_dim"], "index_topk": cfg["index_topk"],
        "n_routed_experts": cfg["n_routed_experts"], "num_experts_per_tok": cfg["num_experts_per_tok"],
        "n_shared_experts": 1, "moe_intermediate_size": cfg["moe_intermediate_size"],
        "num_hash_layers": cfg["num_hash_layers"], "scoring_func": "sqrtsoftplus", "topk_method": "noaux_tc",
        "norm_topk_prob": True, "routed_scaling_factor": cfg["routed_scaling_factor"],
        "swiglu_limit": cfg["swiglu_limit"], "hidden_act": "silu", "rms_norm_eps": cfg["eps"],
        "hc_mult": cfg["hc_mult"], "hc_sinkhorn_iters": cfg["hc_sinkhorn_iters"], "hc_eps": cfg["hc_eps"],
        "num_nextn_predict_layers": 1, "tie_word_embeddings": False, "attention_bias": False,
        "attention_dropout": 0.0, "initializer_range": 0.02, "use_cache": True,
        "bos_token_id": 0, "eos_token_id": 1, "expert_dtype": "fp4",
        "quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "scale_fmt": "ue8m0",
                                "weight_block_size": [128, 128], "activation_scheme": "dynamic"}}
    if dspark:
        out.update({"dspark_block_size": cfg["dspark_block_size"], "dspark_markov_rank": cfg["dspark_markov_rank"],
                    "dspark_noise_token_id": cfg["dspark_noise"], "dspark_target_layer_ids": cfg["dspark_target_layer_ids"]})
    return out


def generation_config():
    """generation_config.json."""
    return {"_from_model_config": True, "bos_token_id": 0, "eos_token_id": 1, "do_sample": True, "temperature": 1.0,
            "top_p": 1.0, "transformers_version": "4.57.1"}
