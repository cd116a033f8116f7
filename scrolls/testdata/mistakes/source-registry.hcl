scroll "far" {
  source  = "hashicorp/consul/aws"
  version = "1.0"
}
