# What a container with all GPUs sees.
nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader,nounits | sed 's/^/gpu /' &&
nvidia-smi | sed -n 's/.*CUDA Version: *\([0-9.]*\).*/cuda \1/p'
