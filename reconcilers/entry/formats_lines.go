package entry

func init() {
	Formats["keyword"] = keyword
	Formats["ini"] = ini
	Formats["env"] = env
	Formats["toml"] = tomlFormat{}
	tomlLines.put = tomlFormat{}.Put
}
